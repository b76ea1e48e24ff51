"""The program: `pyagent` and `python -m pyagent`."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    from pyagent.ui.instant import open_instant

    instant = open_instant(sys.argv[1:], os.environ)
    if instant is None:
        from pyagent.ui.cli import run

        return run(sys.argv[1:])
    with instant:
        from pyagent.ui.cli import run

        return run(sys.argv[1:], instant)


if __name__ == "__main__":
    sys.exit(main())
