"""The tools as the API and the loop see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import pyagent
from pyagent.messages import ImageBlock, TextBlock
from pyagent.settings import Settings
from pyagent.tools.budget import within_cap
from pyagent.tools.registry import default_tools, tool_definitions
from pyagent.tools.tool import ToolResult
from pyagent.tools.web import FetchedPage, FetchError
from tests.tools.support import Workbench, content_of

MAIN_TOOLS = ("Read", "Bash", "Grep", "Glob", "Edit", "Write")


def test_the_six_main_tools_come_first_and_cost_less_than_2500_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(Path(pyagent.__file__).parent / "data"))
    import tiktoken

    definitions = tool_definitions(default_tools(Settings()))
    assert tuple(definition["name"] for definition in definitions[:6]) == MAIN_TOOLS
    encoding = tiktoken.get_encoding("o200k_base")
    assert len(encoding.encode(json.dumps(definitions[:6]))) < 2_500


class NoNetwork:
    async def get(self, url: str) -> FetchedPage:
        raise FetchError("there is no network")


def test_all_tools_together_cost_less_than_2700_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(Path(pyagent.__file__).parent / "data"))
    import tiktoken

    definitions = tool_definitions(default_tools(Settings(), NoNetwork()))
    assert definitions[-1]["name"] == "WebFetch"
    assert len(tiktoken.get_encoding("o200k_base").encode(json.dumps(definitions))) < 2_700


def test_definitions_are_the_same_bytes_each_time() -> None:
    first, second = (json.dumps(tool_definitions(default_tools(Settings()))) for _ in range(2))
    assert first == second


def test_the_fields_are_those_models_are_trained_on() -> None:
    fields = {d["name"]: tuple(d["input_schema"]["properties"]) for d in tool_definitions(default_tools(Settings()))}
    assert fields["Read"] == ("file_path", "offset", "limit", "pages")
    assert fields["Write"] == ("file_path", "content")
    assert fields["Edit"] == ("file_path", "old_string", "new_string", "replace_all")
    assert fields["Bash"] == ("command", "description", "timeout", "run_in_background")
    assert fields["Glob"] == ("pattern", "path")
    assert fields["Grep"] == (
        "pattern",
        "path",
        "glob",
        "type",
        "output_mode",
        "-A",
        "-B",
        "-C",
        "-n",
        "-i",
        "-o",
        "multiline",
        "head_limit",
        "offset",
    )


def test_schemas_hold_no_null_alternatives_and_no_titles() -> None:
    text = json.dumps(tool_definitions(default_tools(Settings())))
    assert '"null"' not in text
    assert '"title"' not in text


def test_a_misspelt_field_is_refused_and_null_is_taken_for_absent() -> None:
    tool = default_tools(Settings())["Read"]
    with pytest.raises(ValidationError):
        tool.input_model.model_validate({"path": "a"})
    assert tool.input_model.model_validate({"file_path": "a", "offset": None, "limit": "5"}).limit == 5


def test_only_tools_that_change_nothing_may_run_side_by_side() -> None:
    tools = default_tools(Settings())
    read_only = {name for name, tool in tools.items() if tool.is_read_only}
    assert read_only == {"Read", "Grep", "Glob", "BashOutput", "AskUserQuestion", "Recall"}


@pytest.mark.parametrize("name", default_tools(Settings()))
def test_each_tool_is_described_and_capped(name: str) -> None:
    tool = default_tools(Settings())[name]
    assert tool.description
    assert tool.result_cap_chars > 0


async def test_a_result_over_its_cap_goes_to_a_file(bench: Workbench) -> None:
    tool = bench.tools["Glob"]
    text = "".join(f"{n}\n" for n in range(50_000))
    image = ImageBlock({"type": "base64"}, 1, 1)
    result = within_cap(ToolResult((TextBlock(text), image)), tool, bench.context("toolu/../x"))
    assert len(result.text) < tool.result_cap_chars + 500
    assert result.text.startswith("0\n1\n")
    assert result.text.endswith("49999\n")
    path = Path(result.display["full_output"])
    assert path.parent == bench.results_dir
    assert content_of(path) == text
    assert result.content[1] == image


async def test_a_result_within_its_cap_is_left_alone(bench: Workbench) -> None:
    result = ToolResult.of("small")
    assert within_cap(result, bench.tools["Glob"], bench.context()) is result
    assert not bench.results_dir.exists()


async def test_the_task_list_travels_in_the_display(bench: Workbench) -> None:
    todos = [
        {"content": "Fix it", "status": "completed", "activeForm": "Fixing it"},
        {"content": "Test it", "status": "in_progress", "activeForm": "Testing it", "id": "2"},
    ]
    result = await bench.call("TodoWrite", todos=todos)
    assert [task["status"] for task in result.display["tasks"]] == ["completed", "in_progress"]
    assert result.display["tasks"][0] == todos[0]
    assert result.text == "The list has 2 tasks, 1 of them completed."


async def test_a_notebook_cell_is_replaced_inserted_and_deleted(bench: Workbench) -> None:
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": 3,
            "id": "c1",
            "metadata": {},
            "outputs": [{"x": 1}],
            "source": ["1\n"],
        },
        {"cell_type": "markdown", "id": "m1", "metadata": {"é": 1}, "source": ["é"]},
    ]
    notebook = {"cells": cells, "metadata": {"kept": True}, "nbformat": 4, "nbformat_minor": 5}
    path = bench.path("a.ipynb", json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    assert (await bench.call("NotebookEdit", notebook_path="a.ipynb", cell_id="c1", new_source="2")).is_error
    await bench.call("Read", file_path="a.ipynb")
    await bench.call("NotebookEdit", notebook_path="a.ipynb", cell_id="c1", new_source="2\n3")
    await bench.call(
        "NotebookEdit",
        notebook_path="a.ipynb",
        cell_id="c1",
        new_source="# T",
        edit_mode="insert",
        cell_type="markdown",
    )
    await bench.call("NotebookEdit", notebook_path="a.ipynb", cell_id="m1", edit_mode="delete")
    after = json.loads(path.read_text())
    assert [cell["source"] for cell in after["cells"]] == [["2\n", "3"], ["# T"]]
    assert after["cells"][0] == cells[0] | {"source": ["2\n", "3"], "outputs": [], "execution_count": None}
    assert after["metadata"] == {"kept": True}
    assert path.read_text().startswith('{\n "cells"')
    wrong = await bench.call("NotebookEdit", notebook_path="a.ipynb", cell_id="zz", edit_mode="delete")
    assert "no cell 'zz'" in wrong.text


@pytest.mark.parametrize("content", ["{}", "[]", "not json", '{"cells": {"a": 1}}', '{"cells": [1, "x"]}'])
async def test_what_is_no_notebook_is_refused(bench: Workbench, content: str) -> None:
    path = bench.path("a.ipynb", content)
    await bench.call("Read", file_path="a.ipynb")
    fields = {"notebook_path": "a.ipynb", "cell_id": "x", "new_source": "y"}
    assert not bench.can_succeed("NotebookEdit", **fields)
    assert (await bench.call("NotebookEdit", **fields)).is_error
    assert content_of(path) == content
