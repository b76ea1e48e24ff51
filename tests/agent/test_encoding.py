"""The local encoding: loaded without the network, and able to count anything."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyagent import data
from pyagent.agent.encoding import CACHE_VARIABLE, CHUNK_CHARS, ENCODING_FILE, LocalEncoding
from pyagent.compaction.count import BYTES_PER_TOKEN, Tokenizer


@pytest.fixture(scope="module")
def loaded() -> LocalEncoding:
    encoding = LocalEncoding()
    encoding.start().result()
    return encoding


def guess(text: str) -> int:
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)


async def test_counts_are_guessed_from_bytes_until_the_load_has_ended_and_exact_afterwards() -> None:
    encoding = LocalEncoding()
    before = (encoding.is_ready, encoding.is_exact, encoding.problem)
    assert encoding.count("hello world") == guess("hello world")
    await encoding.ready()
    assert before == (False, False, "")
    assert (encoding.is_ready, encoding.is_exact, encoding.problem) == (True, True, "")
    assert encoding.count("hello world") == 2


def test_it_can_stand_where_a_tokenizer_is_asked_for(loaded: LocalEncoding) -> None:
    tokenizer: Tokenizer = loaded
    assert tokenizer.is_ready


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("hello world", 2),
        ("\0", 1),
    ],
)
def test_plain_text_has_the_encoding_s_own_count(loaded: LocalEncoding, text: str, tokens: int) -> None:
    assert loaded.count(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "<|endoftext|>",
        "<|endofprompt|> and more",
        "\ud800",
        "a\udfffb",
        "\x00\x01\x7f",
        "\N{ZERO WIDTH JOINER}" * 50,
        "漢字" * 50,
    ],
)
def test_special_tokens_lone_surrogates_and_binary_junk_are_counted_as_text(loaded: LocalEncoding, text: str) -> None:
    assert loaded.count(text) > 0


def test_a_special_token_s_name_costs_what_its_letters_cost(loaded: LocalEncoding) -> None:
    assert loaded.count("<|endoftext|>") > 3


def test_a_text_longer_than_a_chunk_counts_as_its_parts_do(loaded: LocalEncoding) -> None:
    text = "word " * (CHUNK_CHARS // 5)
    assert loaded.count(text * 3) == 3 * loaded.count(text)


def test_a_single_word_of_five_million_letters_is_counted(loaded: LocalEncoding) -> None:
    # An encoder that looks at each pair again after every merge would be at this for hours.
    assert loaded.count("a" * 5_000_000) == 625_000


async def test_the_environment_is_as_before_after_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    await LocalEncoding().ready()
    assert CACHE_VARIABLE not in os.environ
    monkeypatch.setenv(CACHE_VARIABLE, "the user's own")
    await LocalEncoding().ready()
    assert os.environ[CACHE_VARIABLE] == "the user's own"


async def test_many_waiters_share_one_load() -> None:
    encoding = LocalEncoding()
    await asyncio.gather(*(encoding.ready() for _ in range(20)))
    assert encoding.start() is encoding.start()
    assert encoding.is_exact


async def test_a_waiter_who_gives_up_does_not_end_the_load_for_others() -> None:
    encoding = LocalEncoding()
    impatient = asyncio.create_task(encoding.ready())
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    await encoding.ready()
    assert encoding.is_exact


async def test_without_the_file_decisions_go_on_with_guesses_and_the_problem_is_told(tmp_path: Path) -> None:
    encoding = LocalEncoding(tmp_path)
    await encoding.ready()
    assert encoding.is_ready
    assert not encoding.is_exact
    assert "No such file" in encoding.problem
    assert encoding.count("hello \ud800") == guess("hello \ud800")


async def test_a_damaged_file_is_neither_used_nor_deleted_nor_replaced_by_a_download(tmp_path: Path) -> None:
    damaged = tmp_path / ENCODING_FILE
    shutil.copy(Path(next(iter(data.__path__))) / ENCODING_FILE, damaged)
    with damaged.open("ab") as file:
        file.write(b"!")
    size = damaged.stat().st_size
    encoding = LocalEncoding(tmp_path)
    await encoding.ready()
    assert not encoding.is_exact
    assert "damaged" in encoding.problem
    assert damaged.stat().st_size == size


def test_the_shipped_file_is_found_where_tiktoken_s_cache_is_broken_and_no_network_is_there(tmp_path: Path) -> None:
    script = (
        "import socket, sys, asyncio\n"
        "def refuse(*_): raise OSError('no network in this test')\n"
        "socket.socket.connect = refuse\n"
        "socket.getaddrinfo = refuse\n"
        "from pyagent.agent.encoding import LocalEncoding\n"
        "assert 'tiktoken' not in sys.modules\n"
        "encoding = LocalEncoding()\n"
        "encoding.start().result()\n"
        "assert encoding.is_exact, encoding.problem\n"
    )
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    environ = {**os.environ, CACHE_VARIABLE: str(not_a_folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
