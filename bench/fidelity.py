"""What survives five compactions with a summariser that forgets everything, as two tables.

Run from the repository's root: `python bench/fidelity.py`. Exits 1 if anything was lost.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.agent.fidelity import played, table  # the repository's root must be on the path first


def main() -> int:
    is_lossy = False
    for is_continued in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            checks = played(Path(folder), is_continued=is_continued)
        print("\nquit and --continue before each" if is_continued else "in one process")
        print(table(checks))
        is_lossy |= any(check.missing or check.calls != 1 for check in checks)
    return int(is_lossy)


if __name__ == "__main__":
    raise SystemExit(main())
