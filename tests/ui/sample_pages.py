"""Pages as an ordinary session has them, for tests of what they look like and do."""

from __future__ import annotations

from datetime import UTC, datetime

from pyagent.agent.config import LoadedSettings
from pyagent.agent.setting_catalogue import setting_rows
from pyagent.pages import (
    AnswerPage,
    Bill,
    CacheState,
    CompactionRow,
    CompactionsPage,
    ContextItem,
    ContextLine,
    ContextPage,
    ContextPart,
    CostPage,
    CostRow,
    CostTurn,
    DenialRow,
    DiffFile,
    DiffPage,
    DiffScope,
    GateState,
    LayerWork,
    MemoryPage,
    MemoryRow,
    PermissionsPage,
    RuleRow,
    SettingsPage,
    TaskRow,
    TasksPage,
)
from pyagent.settings import Settings

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
USER_FILE = "/home/ada/.pyagent/settings.json"
FOREIGN_FILE = "/home/ada/.claude/settings.json"

CONTEXT = ContextPage(
    model="claude-test-5",
    used_tokens=84_200,
    is_estimate=True,
    window_tokens=200_000,
    trigger_tokens=167_000,
    is_auto_compact_on=True,
    percent_left=50,
    state="ok",
    parts=(
        ContextPart("system prompt", "system", 2_400),
        ContextPart("tool declarations", "tools", 9_800),
        ContextPart("Read results", "results", 31_000),
        ContextPart("Bash results", "results", 14_000),
        ContextPart("answers", "answers", 9_000),
        ContextPart("thinking", "thinking", 7_000),
        ContextPart("tool calls", "calls", 5_000),
        ContextPart("memory files", "memory", 3_000),
        ContextPart("your messages", "prompts", 3_000),
    ),
    items=(
        ContextItem("memory", "/repo/engine/AGENTS.md", 3_000),
        ContextItem("tools", "Bash", 1_900),
        ContextItem("results", "Read results", 12_000, "src/engine/solver.py"),
        ContextItem("results", "Bash results", 8_000, "pytest -q"),
    ),
    arithmetic=(
        ContextLine("context window", 200_000),
        ContextLine("reserved for the summary's output", -20_000),
        ContextLine("effective window", 180_000),
        ContextLine("buffer, so that the round in flight can finish", -13_000),
        ContextLine("compacts at", 167_000),
    ),
    marks=(ContextLine("warning", 147_000), ContextLine("error", 147_000), ContextLine("trigger", 167_000)),
    gates=(
        GateState("history_snip", False, "default"),
        GateState("session_memory", True, "default"),
        GateState("context_collapse", True, "PYAGENT_CONTEXT_COLLAPSE"),
    ),
    layers=(
        LayerWork("old results cleared", 12, 8_400, "idle for 70 min"),
        LayerWork("compacted: full, auto", 1, 143_000, "167,000 → 24,000"),
    ),
    cache=CacheState(192.0, 300, 0.93),
    bill=Bill(1.42, 96_000, 0.97, is_economy_on=False),
    remarks=("Notes: 2 updates in this stretch, 4 messages behind",),
    is_full=False,
)

COST = CostPage(
    total_usd=1.2345,
    is_exact=True,
    open_for_s=4_200.0,
    models=(
        CostRow("claude-test-5", 42, 1_900_000, 1_700_000, 120_000, 31_000, 1.1345),
        CostRow("claude-small-5", 3, 60_000, 0, 0, 2_000, None),
    ),
    purposes=(
        CostRow("conversation", 40, 1_800_000, 1_650_000, 100_000, 28_000, 1.0),
        CostRow("summaries", 2, 160_000, 150_000, 20_000, 5_000, 0.2345),
    ),
    turns=(
        CostTurn(1, "The area function is imprecise. Make it exact.", CostRow("", 8, 220_000, 160_000, 0, 0, 0.2)),
        CostTurn(2, "Now the volume.", CostRow("", 14, 640_000, 610_000, 0, 0, 0.31)),
        CostTurn(3, "Write the changelog.", CostRow("", 3, 90_000, 0, 0, 0, 0.4)),
    ),
    lost_caches=("28,000 tokens sent anew, $0.0123 more: the system text changed",),
)

COMPACTIONS = CompactionsPage(
    (
        CompactionRow(
            1,
            AT,
            "from the session's notes, automatic",
            167_000,
            24_000,
            ("no call · 0.3 s", "40 messages summarised, 6 kept", "checked: kept 9 of 9"),
            "## Primary request\n\nMake the area exact.",
            is_undoable=False,
        ),
        CompactionRow(
            2, AT, "summary by the model, by hand", 120_000, 18_000, ("1 call, $0.0420 · 9.2 s",), "", is_undoable=True
        ),
    )
)

SHAPES_DIFF = """diff --git a/shapes.py b/shapes.py
index 1..2 100644
--- a/shapes.py
+++ b/shapes.py
@@ -1,3 +1,3 @@
 import math
-def area(r): return 3.14 * r ** 2
+def area(r): return math.pi * r ** 2
 # the end
"""

DIFF = DiffPage(
    scopes=(
        DiffScope("turn 2", "Now the volume.", "turn 2"),
        DiffScope("turn 1", "Make the area exact.", "turn 1"),
        DiffScope("session", "the whole session", "since it began"),
        DiffScope("head", "against git", "HEAD and what is not committed"),
    ),
    chosen="turn 1",
    files=(
        DiffFile("shapes.py", "change", SHAPES_DIFF),
        DiffFile("notes.txt", "create", "--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1,1 @@\n+hello\n"),
        DiffFile("old.bin", "delete", ""),
    ),
)

SHOWN_KEYS = (
    *("model", "fallbackModel", "effortLevel", "theme", "fileCheckpointingEnabled", "cleanupPeriodDays", "webSearch"),
    *("autoCompactEnabled", "autoCompactWindow", "permissions.defaultMode", "compaction.gapMinutes"),
    *("compaction.policy", "gates.historySnip", "permissions.allow"),
)
"""A few of each kind, so that a setting more does not change what the page looks like."""
SETTINGS = SettingsPage(
    tuple(
        row
        for row in setting_rows(LoadedSettings(Settings(model="claude-test-5"), (), {"model": USER_FILE}, {}))
        if row.key in SHOWN_KEYS
    ),
    (
        ("user", USER_FILE),
        ("project", "/repo/engine/.pyagent/settings.json"),
        ("local", "/repo/engine/l.json"),
    ),
)

PERMISSIONS = PermissionsPage(
    mode="default",
    rules=(
        RuleRow("deny", "Read(~/.ssh/**)", FOREIGN_FILE, is_removable=False),
        RuleRow("allow", "Bash(npm test:*)", USER_FILE, is_removable=True),
        RuleRow("allow", "Write(src/**)", USER_FILE, is_removable=True, problem="never matches; write Edit(src/**)."),
        RuleRow("allow", "Bash(git push)", "this session", is_removable=True),
    ),
    folders=(("/repo/engine", "working folder"), ("/repo/library", "/add-dir")),
    denials=(DenialRow(AT, "Bash", "rm -rf build", "you said no"),),
    is_trusted=True,
)

TASKS = TasksPage(
    (
        TaskRow("bash_4", "npm run dev", "running", "ready on port 3000\nGET / 200\n"),
        TaskRow("bash_2", "pytest -q", "exit 1", "1 failed\n"),
    )
)

MEMORY = MemoryPage(
    (
        MemoryRow("/home/ada/.claude/CLAUDE.md", "user", 420, is_loaded=True),
        MemoryRow("/repo/engine/AGENTS.md", "project", 3_000, is_loaded=True),
        MemoryRow("/repo/engine/CLAUDE.local.md", "local", 0, is_loaded=False),
    )
)

ANSWER = AnswerPage("what does -q do?", "It makes pytest **quiet**.", 0.0031, 0.97)
