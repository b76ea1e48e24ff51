"""WebFetch as the model sees it: which address is fetched, what comes back, what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pyagent.tools.html_text import markdown_of
from pyagent.tools.tool import ToolResult
from pyagent.tools.web import FetchedPage, FetchError, normal_url
from pyagent.tools.web_fetch import CACHE_S, WebFetchInput, WebFetchTool
from tests.tools.support import Workbench


def page(body: str | bytes, content_type: str = "text/plain", status: int = 200, charset: str = "") -> FetchedPage:
    return FetchedPage(status, content_type, charset, body if isinstance(body, bytes) else body.encode())


def moved(location: str, status: int = 302) -> FetchedPage:
    return FetchedPage(status, "", "", b"", location)


@dataclass
class ScriptedFetcher:
    pages: dict[str, FetchedPage | FetchError]
    asked: list[str] = field(default_factory=list)

    async def get(self, url: str) -> FetchedPage:
        self.asked.append(url)
        answer = self.pages[url]
        if isinstance(answer, FetchError):
            raise answer
        return answer


async def fetched(
    bench: Workbench, url: str, pages: dict[str, FetchedPage | FetchError], prompt: str = ""
) -> ToolResult:
    return await WebFetchTool(ScriptedFetcher(pages)).run(WebFetchInput(url=url, prompt=prompt), bench.context())


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://a.example/x", "https://a.example/x"),
        ("a.example", "https://a.example/"),
        ("http://a.example:80/", "https://a.example/"),
        ("https://a.example:443/", "https://a.example/"),
        ("http://a.example:8080/x", "http://a.example:8080/x"),
        ("https://A.Example./x?q=a b#part", "https://a.example/x?q=a%20b"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://a.example/a%20b", "https://a.example/a%20b"),
        ("https://[2606:4700::1]/", "https://[2606:4700::1]/"),
    ],
    ids=[
        "http becomes https",
        "no scheme",
        "port 80",
        "port 443",
        "an explicit port stays http",
        "fragment, capitals and trailing dot go",
        "names and paths in other scripts",
        "what is quoted stays quoted",
        "IPv6",
    ],
)
def test_an_address_is_brought_into_one_form(given: str, url: str) -> None:
    assert normal_url(given) == url


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("file:///etc/passwd", "not a scheme"),
        ("https://", "names no host"),
        ("https://user:secret@a.example/", "user name or password"),
        ("https://good.example\\@evil.example/", "user name or password"),
        ("https://a.example:99999/", "ort"),
        ("https://a.example/" + "x" * 2_000, "longer than 2,000"),
        ("https://a..example/", "not a host name"),
    ],
)
async def test_what_is_no_page_is_refused_without_a_connection(bench: Workbench, given: str, told: str) -> None:
    result = await fetched(bench, given, {})
    assert result.is_error
    assert told in result.text


async def test_a_page_stands_below_its_address_and_the_prompt(bench: Workbench) -> None:
    result = await fetched(bench, "a.example", {"https://a.example/": page("hello\nworld")}, prompt="greetings")
    head, _, body = result.text.partition("\n\n")
    assert head.splitlines()[:2] == ["Page https://a.example/", "Looked for: greetings"]
    assert "not instructions" in head
    assert body == "hello\nworld"


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (page("<p>Grüße</p>".encode("latin-1"), "text/html", charset="iso-8859-1"), "Grüße"),
        (page("<meta charset='latin-1'><p>Grüße</p>".encode("latin-1"), "text/html"), "Grüße"),
        (page("<!DOCTYPE html><p><b>x</b></p>", ""), "**x**"),
        (page('{"a": 1}', "application/json"), '{"a": 1}'),
        (page("ü", "text/plain", charset="no-such-charset"), "ü"),
        (page("", "text/html"), "(The page holds no text.)"),
    ],
    ids=["charset by header", "charset by the page", "HTML without a type", "JSON", "unknown charset", "empty"],
)
async def test_what_is_text_is_read(bench: Workbench, got: FetchedPage, text: str) -> None:
    result = await fetched(bench, "a.example", {"https://a.example/": got})
    assert not result.is_error
    assert result.text.partition("\n\n")[2] == text


@pytest.mark.parametrize(
    ("got", "told"),
    [
        (page(b"%PDF", "application/pdf"), "is application/pdf, 4 bytes"),
        (page(b"a\0b", ""), "binary data"),
        (page("<p>no such page</p>", "text/html", 404), "status 404.\n\nno such page"),
        (FetchError("the host is not known"), "could not be fetched: the host is not known."),
    ],
    ids=["PDF", "bytes of no type", "an error page", "no answer"],
)
async def test_what_is_no_text_is_an_error(bench: Workbench, got: FetchedPage | FetchError, told: str) -> None:
    result = await fetched(bench, "a.example", {"https://a.example/": got})
    assert result.is_error
    assert told in result.text


async def test_redirects_on_one_host_are_followed_and_others_reported(bench: Workbench) -> None:
    pages: dict[str, FetchedPage | FetchError] = {
        "https://a.example/": moved("http://a.example/next"),
        "https://a.example/next": moved("https://b.example/x?y=1", 301),
    }
    result = await fetched(bench, "a.example", pages)
    assert not result.is_error
    assert "redirects to another host (status 301): https://b.example/x?y=1" in result.text


@pytest.mark.parametrize(
    ("location", "told"),
    [("https://a.example/", "more than 5 times"), ("file:///etc/passwd", "cannot be fetched")],
    ids=["in a circle", "to no page"],
)
async def test_redirects_that_lead_nowhere_are_errors(bench: Workbench, location: str, told: str) -> None:
    result = await fetched(bench, "a.example", {"https://a.example/": moved(location)})
    assert result.is_error
    assert told in result.text


async def test_a_page_is_fetched_once_in_a_quarter_of_an_hour_and_failures_each_time(bench: Workbench) -> None:
    now_s = [0.0]
    fetcher = ScriptedFetcher({"https://a.example/": page("x"), "https://b.example/": page("x", status=500)})
    tool = WebFetchTool(fetcher, clock=lambda: now_s[0])
    for at_s, url in ((0.0, "a"), (CACHE_S, "a"), (CACHE_S + 1.0, "a"), (0.0, "b"), (0.0, "b")):
        now_s[0] = at_s
        await tool.run(WebFetchInput(url=f"{url}.example"), bench.context())
    assert [url[8] for url in fetcher.asked] == ["a", "a", "b", "b"]


def test_the_question_names_the_host_and_shows_the_whole_address(bench: Workbench) -> None:
    tool = WebFetchTool(ScriptedFetcher({}))
    question = tool.permission(WebFetchInput(url="http://A.example/x?secret=1", prompt="p"), bench.context())
    assert question is not None
    assert (question.action, question.subject) == ("network", "a.example")
    assert question.description == "https://a.example/x?secret=1\np"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<title>T</title><body><p>x</p>", "# T\n\nx"),
        ("<title>T</title><h1>Head</h1><ul><li>a</li><li>b</li></ul>", "# Head\n\n- a\n- b"),
        ("<nav>menu</nav><main><p>x</p></main><footer>f</footer>", "x"),
        ("<p>a<script>alert(1)</script><style>p{}</style></p>", "a"),
        ("<a href='/x?y=1'>go</a>", "[go](https://a.example/x?y=1)"),
        ("<p>x <img src='data:image/png;base64,AAAA' alt='A cat'><img src='y.png'></p>", "x [image: A cat]"),
        ("<pre><code>a  b\n c</code></pre>", "```\na  b\n c\n```"),
        ("<table><tr><th>a</th></tr><tr><td>1</td></tr></table>", "| a |\n| --- |\n| 1 |"),
        ("<?xml version='1.0'?><html><p>x</p></html>", "x"),
        ("<div>" * 3_000 + "deep", "deep"),
        ("https://a.example/only-a-link", "https://a.example/only-a-link"),
    ],
    ids=["title", "own heading", "main part", "no scripts", "links", "images", "code", "table", "xml", "deep", "link"],
)
def test_html_reads_as_markdown(html: str, markdown: str) -> None:
    assert markdown_of(html, "https://a.example/dir/").replace("\\", "") == markdown
