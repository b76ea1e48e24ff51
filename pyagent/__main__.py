"""The program: `pyagent` and `python -m pyagent`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    from pyagent.ui.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
