"""What a line that is being typed will be: a prompt, a command for the shell, or something to remember."""

from __future__ import annotations

from enum import StrEnum


class InputKind(StrEnum):
    """The value is the word shown on the input line."""

    PROMPT = ""
    SHELL = "shell"
    PRIVATE_SHELL = "shell, not told to the model"
    MEMORY = "memory"


def input_kind(shown: str) -> InputKind:
    """By the first character. Only a single line is a memory: a text that begins with a heading is a prompt."""
    if shown.startswith("!!"):
        return InputKind.PRIVATE_SHELL
    if shown.startswith("!"):
        return InputKind.SHELL
    return InputKind.MEMORY if shown.startswith("#") and "\n" not in shown else InputKind.PROMPT
