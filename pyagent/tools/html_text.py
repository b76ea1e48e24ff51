"""A web page as Markdown: its text, headings, lists, tables and links, without what only a browser needs."""

from __future__ import annotations

import re
import warnings
from typing import Any
from urllib.parse import urljoin

_NOT_TEXT = ("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "button", "select", "nav")


def markdown_of(html: str, url: str) -> str:
    """The page's main part if it marks one, else its body. Links are absolute. May take seconds for megabytes."""
    from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
    from bs4.element import PreformattedString
    from markdownify import MarkdownConverter

    # Advice for the authors of scripts: the page is what it is.
    for advice in (MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning):
        warnings.filterwarnings("ignore", category=advice)
    soup = BeautifulSoup(html, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title is not None else ""
    for tag in soup.find_all(["title", *_NOT_TEXT]):
        tag.decompose()
    for remark in soup.find_all(string=lambda text: isinstance(text, PreformattedString)):
        remark.extract()
    mains = soup.find_all("main")
    part: Any = mains[0] if len(mains) == 1 else soup.body or soup
    for link in part.find_all("a", href=True):
        link["href"] = urljoin(url, str(link["href"]))
    for image in part.find_all("img"):
        image.replace_with(f"[image: {image['alt']}]" if image.get("alt") else "")
    try:
        text = MarkdownConverter(heading_style="ATX", bullets="-", wrap=False).convert_soup(part)
    except RecursionError:
        # Thousands of nested elements; their text is all that can be had.
        text = "\n".join(part.stripped_strings)
    text = re.sub(r"[ \t]+\n", "\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return f"# {title}\n\n{text}" if title and not text.startswith("# ") else text
