"""What a search is asked for, as it is handed to the process that searches."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class SearchQuery:
    pattern: str
    mode: str
    """`content`, `count` or `files_with_matches`."""
    is_case_ignored: bool = False
    is_multiline: bool = False
    is_only_matching: bool = False
    before: int = 0
    after: int = 0
    globs: tuple[str, ...] = ()
    type_name: str = ""
    is_ignored_shown: bool = False
    only: str = ""
    """One file in the folder searched; empty for all below it."""
    max_columns_bytes: int = 500

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SearchQuery:
        fields = json.loads(text)
        return cls(**{**fields, "globs": tuple(fields["globs"])})
