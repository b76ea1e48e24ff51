from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.tools.support import Workbench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Workbench]:
    root = tmp_path / "project"
    root.mkdir()
    workbench = Workbench(root)
    yield workbench
    await workbench.shell.close()
