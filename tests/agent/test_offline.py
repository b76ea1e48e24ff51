"""The offline model: each instruction against the real tools, and the shape of what it streams."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.agent.offline import OfflineModel
from pyagent.agent.offline_intents import parse_intent
from pyagent.agent.offline_kinds import (
    Count,
    Create,
    Explain,
    Find,
    Help,
    Intent,
    Layout,
    ListFiles,
    Replace,
    Run,
    RunTests,
    Show,
    Summarise,
    Unknown,
)
from pyagent.agent.offline_results import SIGNATURE
from pyagent.agent.offline_summary import TITLES
from pyagent.agent.wire.stream import accumulate
from pyagent.compaction.ports import SummaryAnswer
from pyagent.compaction.prompt import parse_summary, summary_instruction
from pyagent.compaction.session_memory import notes_template
from pyagent.errors import PromptTooLongError
from pyagent.messages import JsonObject, Usage
from tests.agent.offline_driver import Body, Driver, events_of, offline_model, request_of, respond
from tests.tools.support import Workbench

THRESHOLDS = '''"""When compaction starts."""

WARNING_BUFFER = 20_000


def compute_thresholds(window: int, output: int = 20_000) -> int:
    """How many tokens may stand in the window."""
    effective = reserve(window, output)
    return effective - WARNING_BUFFER


def reserve(window: int, output: int) -> int:
    return window - output
'''


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[Driver]:
    bench = Workbench(tmp_path / "repo")
    bench.path("README.md", "# Sample\n\nA sample project\nwith colours.\n\nMore.\n")
    bench.path("src/thresholds.py", THRESHOLDS)
    bench.path("src/app.py", "from src.thresholds import compute_thresholds\n\nprint(compute_thresholds(200_000))\n")
    bench.path("src/colour.py", "colour = 'red'\nprint(colour)\n")
    bench.path("docs/notes.txt", "my colour\nTODO: more\n")
    bench.path("pyproject.toml", "[project]\nname = 'sample'\n")
    bench.path("tests/test_app.py", "def test_one():\n    assert True\n\n\ndef test_two():\n    assert 1 == 2\n")
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q"], cwd=bench.root, check=True)
    yield Driver(bench)
    await bench.shell.close()


# ── what it does in a repository ─────────────────────────────────────────────────────────────────────────────────────


async def test_it_finds_a_definition_reads_it_and_names_file_and_line(driver: Driver) -> None:
    answer = await driver.ask("Find where the thresholds are defined and show me.")
    assert driver.used == ["Grep", "Read"]
    assert "`src/thresholds.py:6`" in answer
    assert "def compute_thresholds" in answer


@pytest.mark.parametrize("prompt", ["find where the thresholds are defined", "where is Threshold defined?"])
async def test_what_is_named_like_the_word_comes_before_what_only_has_it_in_its_name(
    driver: Driver, prompt: str
) -> None:
    driver.bench.path("src/a_report.py", "def _threshold_lines(thresholds):\n    return str(thresholds)\n")
    driver.bench.path("src/b_context.py", "class A:\n    def thresholds(self):\n        return 1\n")
    driver.bench.path("src/z_lines.py", "def thresholds_for(n):\n    pass\n\n\nclass Thresholds:\n    pass\n")
    driver.bench.path("src/thresholds.py", "class Thresholds:\n    pass\n")
    answer = await driver.ask(prompt)
    assert "defined in `src/thresholds.py:1`" in answer
    assert answer.index("src/z_lines.py:5") < answer.index("src/b_context.py:2") < answer.index("src/a_report.py:1")


async def test_a_search_that_finds_no_definition_widens_before_it_gives_up(driver: Driver) -> None:
    assert "`docs/notes.txt:2`" in await driver.ask("where is the TODO defined?")
    answer = await driver.ask("find the word unobtainium")
    assert "no line with `unobtainium`" in answer


async def test_it_shows_a_file_a_range_and_the_last_lines(driver: Driver) -> None:
    assert "A sample project" in await driver.ask("show README.md")
    ranged = await driver.ask("show me lines 6-7 of src/thresholds.py")
    assert "lines 6-7 of 13" in ranged
    assert "WARNING_BUFFER" not in ranged
    assert "window - output" in await driver.ask("show the last 2 lines of src/thresholds.py")


async def test_a_file_named_without_its_folder_is_looked_for(driver: Driver) -> None:
    answer = await driver.ask("show thresholds.py")
    assert driver.used == ["Read", "Glob", "Read"]
    assert "`src/thresholds.py`" in answer


async def test_a_file_shown_twice_is_shown_again_from_what_the_conversation_holds(driver: Driver) -> None:
    await driver.ask("show README.md")
    again = await driver.ask("show README.md")
    assert "A sample project" in again


async def test_a_file_that_a_compaction_put_back_is_shown_from_there(driver: Driver) -> None:
    await driver.ask("show README.md")
    path = driver.bench.root / "README.md"
    text = f"Content of {path}, read again after the compaction (2 lines):\n     1\t# Sample\n     2\tput back"
    restored = {"type": "text", "text": f"<system-reminder>\n{text}\n</system-reminder>"}
    driver.messages[:] = [{"role": "user", "content": [restored]}]
    assert "put back" in await driver.ask("show README.md")


async def test_it_explains_the_layout_from_files_and_readme(driver: Driver) -> None:
    answer = await driver.ask("explain the layout of this repository")
    assert driver.used == ["Bash", "Read"]
    assert "A sample project with colours." in answer
    assert "`src/`: 3 files" in answer
    assert "pyproject.toml" in answer


async def test_the_layout_needs_no_git_repository(tmp_path: Path) -> None:
    bench = Workbench(tmp_path / "plain")
    bench.path("a/b.txt", "x\n")
    answer = await Driver(bench).ask("explain the layout")
    assert "`a/`: 1 file" in answer
    await bench.shell.close()


async def test_a_layout_from_a_list_that_was_cut_does_not_claim_to_be_whole(driver: Driver) -> None:
    for number in range(1_500):
        driver.bench.path(f"data/{number:040}.txt", "")
    answer = await driver.ask("explain the layout")
    assert "Of the files, these " in answer
    assert "1,506 files" not in answer


async def test_it_counts_files_lines_tests_and_words(driver: Driver) -> None:
    assert "**4** Python files" in await driver.ask("how many python files are there?")
    assert "**13** lines" in await driver.ask("count the lines in src/thresholds.py")
    assert "**2** tests" in await driver.ask("how many tests are there?")
    assert "**4 lines**" in await driver.ask("how often does 'colour' occur?")


async def test_it_explains_a_functions_place(driver: Driver) -> None:
    answer = await driver.ask("explain the function compute_thresholds")
    assert "`src/thresholds.py:6`" in answer
    assert "How many tokens may stand in the window." in answer
    assert "calls `reserve`" in answer
    assert "src/app.py:3" in answer


async def test_it_explains_a_file_by_its_definitions(driver: Driver) -> None:
    answer = await driver.ask("what does src/thresholds.py do?")
    assert "When compaction starts." in answer
    assert "def reserve" in answer


async def test_it_lists_files(driver: Driver) -> None:
    answer = await driver.ask("list the python files in src")
    assert "`src/app.py`" in answer
    assert "tests/test_app.py" not in answer
    assert "`docs/notes.txt`" in await driver.ask("find the file named notes")


async def test_it_replaces_in_one_file_after_reading_it(driver: Driver) -> None:
    answer = await driver.ask("replace 'colour' with 'color' in src/colour.py")
    assert driver.used == ["Read", "Edit"]
    assert driver.bench.path("src/colour.py").read_text() == "color = 'red'\nprint(color)\n"
    assert "colour" in driver.bench.path("docs/notes.txt").read_text()
    assert "2 places" in answer


async def test_it_replaces_everywhere_and_reports_each_file(driver: Driver) -> None:
    answer = await driver.ask("replace colour by color everywhere")
    assert driver.used == ["Grep", *["Read"] * 3, *["Edit"] * 3]
    assert "in 3 files" in answer
    for name in ("src/colour.py", "docs/notes.txt", "README.md"):
        assert "colour" not in driver.bench.path(name).read_text()
        assert f"`{name}`" in answer


async def test_replacing_many_files_goes_in_batches_and_misses_none(driver: Driver) -> None:
    for number in range(25):
        driver.bench.path(f"many/f{number}.txt", "needle\n")
    answer = await driver.ask("replace needle with thread everywhere")
    assert "in 25 files" in answer
    assert all(driver.bench.path(f"many/f{n}.txt").read_text() == "thread\n" for n in range(25))


async def test_what_is_not_there_is_not_replaced(driver: Driver) -> None:
    assert "changed nothing" in await driver.ask("replace zebra with horse in README.md")
    assert "changed nothing" in await driver.ask("replace zebra with horse everywhere")


async def test_it_creates_a_file_and_runs_it(driver: Driver) -> None:
    answer = await driver.ask("create hello.py with \"print('hi there')\" and run it")
    assert driver.used == ["Write", "Bash"]
    assert driver.bench.path("hello.py").read_text() == "print('hi there')\n"
    assert "hi there" in answer


async def test_an_existing_file_is_not_overwritten(driver: Driver) -> None:
    before = driver.bench.path("README.md").read_text()
    answer = await driver.ask("create README.md with 'gone'")
    assert "left it as it is" in answer
    assert driver.bench.path("README.md").read_text() == before


async def test_it_runs_a_command_and_tells_its_exit_code(driver: Driver) -> None:
    assert "It succeeded:\n\n```\nhi\n```" in await driver.ask("run `echo hi`")
    assert "exit code 3" in await driver.ask("run `exit 3`")
    assert "printed nothing" in await driver.ask("run `true`")


async def test_it_runs_the_tests_and_names_the_failing_ones(driver: Driver) -> None:
    answer = await driver.ask("run the tests")
    assert driver.used[:2] == ["Glob", "Bash"]
    assert "do not pass" in answer
    assert "tests/test_app.py::test_two" in answer or "No module named" in answer


async def test_it_summarises_the_conversation_for_a_person(driver: Driver) -> None:
    await driver.ask("replace colour by color in src/colour.py")
    answer = await driver.ask("summarise the conversation")
    assert driver.used == []
    assert "replace colour by color in src/colour.py" in answer
    assert "src/colour.py: edited" in answer or "src/colour.py: read; edited" in answer


@pytest.mark.parametrize("prompt", ["write a poem about the sea", "fix the bug", "¿Qué hora es?", "x", "why?"])
async def test_what_it_does_not_understand_it_says_with_what_it_can_do(driver: Driver, prompt: str) -> None:
    answer = await driver.ask(prompt)
    assert driver.used == []
    assert "did not understand" in answer
    assert "ANTHROPIC_API_KEY" in answer


@pytest.mark.parametrize("prompt", ["hello", "thanks", "help", "fix it", "show README.md", "run `true`", "count files"])
async def test_every_answer_names_the_offline_model(driver: Driver, prompt: str) -> None:
    assert (await driver.ask(prompt)).endswith(SIGNATURE)


def _bash_use(command: str) -> JsonObject:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}
    return {"role": "assistant", "content": [use]}


async def test_a_refused_call_ends_in_an_answer_that_says_so() -> None:
    messages: list[JsonObject] = [
        {"role": "user", "content": "run `rm -rf x`"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm -rf x"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "The user said no.", "is_error": True}],
        },
    ]
    response = await respond(offline_model(), request_of(messages, [{"name": "Bash"}]))
    assert response.stop_reason == "end_turn"
    assert "was not run" in response.text
    assert "The user said no." in response.text


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    response = await respond(offline_model(), request_of([{"role": "user", "content": "run `ls`"}]))
    assert response.stop_reason == "end_turn"
    assert "Bash" in response.text


# ── which text is the request ────────────────────────────────────────────────────────────────────────────────────────


def _blocks(*texts: str) -> list[JsonObject]:
    return [{"type": "text", "text": text} for text in texts]


@pytest.mark.parametrize(
    "content",
    [
        _blocks("<system-reminder>\nshow README.md\n</system-reminder>", "run `ls`"),
        _blocks("run `ls`", "<system-reminder>show README.md</system-reminder>"),
        _blocks("run `ls`", "<command-message>show README.md</command-message>"),
        "run `ls`",
    ],
)
async def test_reminders_and_attachments_are_not_taken_for_the_request(content: Any) -> None:
    response = await respond(offline_model(), request_of([{"role": "user", "content": content}], [{"name": "Bash"}]))
    assert [use["input"]["command"] for use in response.tool_uses] == ["ls"]


async def test_a_reminder_behind_tool_results_does_not_begin_a_new_request() -> None:
    messages: list[JsonObject] = [
        {"role": "user", "content": "run `ls`"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a.py"},
                *_blocks("<system-reminder>3 files changed</system-reminder>"),
            ],
        },
    ]
    response = await respond(offline_model(), request_of(messages, [{"name": "Bash"}]))
    assert response.stop_reason == "end_turn"
    assert "a.py" in response.text


async def test_after_a_compaction_within_a_turn_it_goes_on_with_the_prompt_in_the_summary() -> None:
    texts = _blocks(
        "This session continues from an earlier conversation that no longer fits into the context. What happened in it "
        "is summarised here:\n\nThings.",
        "What the user said in the summarised part, word for word, oldest first. It is a record:\n"
        "<user_message>\nshow a.py\n</user_message>\n<user_message>\nrun `ls`\n</user_message>",
        "Go on with the task from where it stands.",
    )
    response = await respond(offline_model(), request_of([{"role": "user", "content": texts}], [{"name": "Bash"}]))
    assert [use["input"]["command"] for use in response.tool_uses] == ["ls"]


# ── compaction ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_summary_request_is_answered_with_nine_sections_in_the_users_words(driver: Driver) -> None:
    await driver.ask("replace colour by color in src/colour.py")
    await driver.ask("run `exit 3`")
    await driver.ask("never touch the docs folder; show README.md")
    driver.messages.append({"role": "user", "content": summary_instruction(2_000)})
    response = await respond(driver.model, request_of(driver.messages))
    summary = parse_summary(SummaryAnswer(response.content, response.stop_reason, response.usage, 0.0))
    assert isinstance(summary, str)
    for number, title in enumerate(TITLES, 1):
        assert f"## {number}. {title}" in summary
    for said in ("replace colour by color in src/colour.py", "run `exit 3`", "never touch the docs folder"):
        assert said in summary.partition("## 6.")[2].partition("## 7.")[0]
    assert "never touch the docs folder" in summary.partition("## 2.")[0]
    assert "exit 3" in summary.partition("## 4.")[2].partition("## 5.")[0]
    assert "src/colour.py" in summary.partition("## 3.")[2].partition("## 4.")[0]
    assert "summary" not in summary.partition("## 7.")[2].partition("## 8.")[0].replace("see section 6", "")
    assert SIGNATURE not in response.text


async def test_a_summary_keeps_near_its_target_and_carries_the_earlier_one_over(driver: Driver) -> None:
    earlier = "This session continues from an earlier conversation that no longer fits. summarised here:\n\nUse tabs."
    messages: list[JsonObject] = [{"role": "user", "content": earlier}]
    for number in range(200):
        messages += [
            {"role": "user", "content": f"request {number} " + "words " * 60},
            {"role": "assistant", "content": "answer " * 80},
        ]
    messages.append({"role": "user", "content": summary_instruction(1_500)})
    response = await respond(offline_model(), request_of(messages))
    assert response.stop_reason == "end_turn"
    assert response.usage.output_tokens < 3_000
    assert "Use tabs." in response.text
    assert "request 0 " in response.text
    assert "request 199 " in response.text


async def test_a_notes_request_is_answered_with_the_same_headings_filled(driver: Driver) -> None:
    await driver.ask("show README.md")
    instruction = f"Bring the notes of this session up to date.\n\n<notes>\n{notes_template()}\n</notes>"
    driver.messages.append({"role": "user", "content": instruction})
    text = (await respond(driver.model, request_of(driver.messages))).text
    headings = [line for line in text.splitlines() if line.startswith("# ")]
    assert headings == [line for line in notes_template().splitlines() if line.startswith("# ")]
    assert "README.md" in text


# ── the wire ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_prompt_over_the_window_is_refused_with_the_figures() -> None:
    request = request_of([{"role": "user", "content": "word " * 4_000}])
    with pytest.raises(PromptTooLongError) as caught:
        await events_of(offline_model(window_tokens=2_000).stream(request))
    assert caught.value.limit_tokens == 2_000
    assert caught.value.prompt_tokens is not None
    assert caught.value.prompt_tokens > 4_000


async def test_usage_counts_the_whole_prompt_and_reads_all_but_the_last_turn_from_the_cache(driver: Driver) -> None:
    await driver.ask("show README.md")
    first, second = driver.responses[0].usage, driver.responses[1].usage
    assert first.cache_read_input_tokens == 0
    assert first.cache_creation_input_tokens > 0
    assert second.cache_read_input_tokens >= first.cache_creation_input_tokens
    assert second.prompt_tokens > first.prompt_tokens
    assert second.output_tokens > 1


async def test_an_answer_over_the_output_limit_is_cut_and_says_so() -> None:
    response = await respond(offline_model(), request_of([{"role": "user", "content": "help"}], max_tokens=20))
    assert response.stop_reason == "max_tokens"
    assert response.usage.output_tokens <= 20


async def test_text_is_streamed_in_small_pieces_with_a_pause_before_each() -> None:
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    model = OfflineModel(count_tokens=len, pause_s=0.004, sleep=sleep)
    events = await events_of(model.stream(request_of([{"role": "user", "content": "help"}])))
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert len(deltas) > 10
    assert pauses == [0.004] * len(deltas)
    assert max(map(len, deltas)) < 80


async def test_the_same_request_gets_the_same_bytes() -> None:
    request = request_of([{"role": "user", "content": "run `ls`"}], [{"name": "Bash"}])
    assert await events_of(offline_model().stream(request)) == await events_of(offline_model().stream(request))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)
_CONTENT_BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "image", "thinking", "odd"])},
    optional={
        "text": st.sampled_from(
            ["show a.py", "replace a by b everywhere", "run the tests", "", "<summary> nine sections"]
        )
        | st.text(max_size=30),
        "id": st.sampled_from(["t1", "t2"]),
        "tool_use_id": st.sampled_from(["t1", "t2", "t3"]),
        "name": st.sampled_from(["Read", "Grep", "Edit", "Bash", "Glob", "Write"]),
        "input": _JSON,
        "content": _JSON,
        "is_error": _JSON,
    },
)
_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system"]),
            "content": _JSON | st.lists(_CONTENT_BLOCKS, max_size=4),
        }
    )
    | _JSON,
    max_size=6,
)
_TOOL_NAMES = st.sampled_from(["Read", "Grep", "Bash", "Edit"])
_TOOLS = st.lists(st.fixed_dictionaries({"name": _TOOL_NAMES}) | _JSON, max_size=4)
_REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "messages": _MESSAGES | _JSON,
        "tools": _TOOLS | _JSON,
        "system": _JSON,
        "max_tokens": _JSON,
        "model": _JSON,
    },
)


@settings(max_examples=150, deadline=None)
@given(_REQUESTS)
async def test_any_request_gets_a_whole_and_valid_stream(raw: JsonObject) -> None:
    response = await accumulate(offline_model().stream(Body(json.dumps(raw).encode())))
    assert response.stop_reason in ("end_turn", "tool_use", "max_tokens")
    assert (response.stop_reason == "tool_use") == bool(response.tool_uses)
    assert response.text.strip()
    assert not response.broken_tool_inputs
    assert isinstance(response.usage, Usage)


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b"\xff", b"{"])
async def test_a_body_that_is_no_request_gets_an_answer_too(body: bytes) -> None:
    assert (await accumulate(offline_model().stream(Body(body)))).text


# ── understanding ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("find where the thresholds are defined and show me", Find("thresholds", True)),
        ("Where is MAX_TOKENS set?", Find("MAX_TOKENS", True)),
        ("search for 'def main' in src/app", Find("def main", False, "src/app")),
        ("which files mention pathspec?", Find("pathspec", False)),
        ("Please find all usages of parseRequest", Find("parseRequest", False)),
        ("find TODOs", Find("TODO", False)),
        ("can you find where errors are handled", Find("errors", False)),
        ("show README.md", Show("README.md")),
        ("Could you please show me README?", Show("README")),
        ("show me lines 10 to 20 of src/a.py", Show("src/a.py", 10, 20)),
        ("show src/a.py:3-9", Show("src/a.py", 3, 9)),
        ("show the first 5 lines of `a.py`", Show("a.py", 1, 5)),
        ("last 5 lines of a.py", Show("a.py", 5, None, is_tail=True)),
        ("what's in Makefile?", Show("Makefile")),
        ("count the python files", Count("files", "*.py", "^", "Python files")),
        ("how many lines of rust code are there?", Count("lines", "*.rs", "^", "lines of Rust code")),
        ("how many times does foo_bar occur", Count("matches", "", "foo_bar", "`foo_bar`")),
        ("explain the function parse_intent", Explain("parse_intent")),
        ("what does parse_request() do?", Explain("parse_request")),
        ("who calls main", Explain("main")),
        ("read src/a.py and explain it", Explain("src/a.py")),
        ("replace foo by bar", Replace("foo", "bar")),
        ("rename `foo` to `bar` in src/a.py", Replace("foo", "bar", "src/a.py")),
        ("Replace 'hello world' with 'bye' in README.md.", Replace("hello world", "bye", "README.md")),
        (
            "replace context pipeline by context engine in README.md",
            Replace("context pipeline", "context engine", "README.md"),
        ),
        ("change the code to work with python in README.md", Unknown()),
        ("in a.py, change x to y", Replace("x", "y", "a.py")),
        ("replace all occurrences of a.b with c.d in all files", Replace("a.b", "c.d")),
        ("create notes.md containing: buy milk", Create("notes.md", "buy milk\n")),
        ("create a new file src/x.py:\n```python\nprint(1)\n```", Create("src/x.py", "print(1)\n")),
        ('write "abc" to x.txt', Create("x.txt", "abc\n")),
        ("run `ls -la`", Run("ls -la")),
        ("run ls -la | wc", Run("ls -la | wc")),
        ("!git status", Run("git status")),
        ("run the command: ./x.sh --all", Run("./x.sh --all")),
        ("what changed?", Run("git status --short --branch")),
        ("run pytest -q tests/x", Run("pytest -q tests/x")),
        ("please run all the tests", RunTests()),
        ("run the tests in tests/test_a.py", RunTests("tests/test_a.py")),
        ("What is in this repo?", Layout()),
        ("give me an overview of the project", Layout()),
        ("list the files in src", ListFiles("src/**/*", "files in `src/`")),
        ("list all python files", ListFiles("**/*.py", "Python files")),
        ("find the file named settings", ListFiles("**/*settings*", "named `settings`")),
        ("summarise the conversation", Summarise()),
        ("what did we do so far?", Summarise()),
        ("hello", Help("greeting")),
        ("hello there", Help("greeting")),
        ("hello run tests", RunTests()),
        ("what can you do?", Help("help")),
        ("write me a poem about cats", Unknown()),
        ("add tests", Unknown()),
        ("Never touch the docs folder; show README.md", Show("README.md")),
        ("I am new here. Explain the layout.", Layout()),
    ],
)
def test_plain_english_is_understood_with_and_without_quotes(prompt: str, intent: Intent) -> None:
    assert parse_intent(prompt) == intent


def test_a_long_text_is_no_instruction_and_is_not_tried_against_every_pattern() -> None:
    assert parse_intent("a" * 1_000_000) == Unknown()
    assert parse_intent("show " + "pyagent/log.py " * 100_000) == Unknown()


@given(st.text(max_size=80))
def test_any_text_has_an_intent(text: str) -> None:
    assert parse_intent(text) is not None
