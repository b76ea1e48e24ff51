"""The permission engine over paths, modes and rules, trap by trap."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.agent.permissions import Allow, Ask, Deny, PermissionEngine
from pyagent.agent.rules import exact_bash_rule, parse_rule, rule_problems
from pyagent.agent.shell_grammar import parse_line
from pyagent.choices import PermissionMode
from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.settings import Settings
from tests.agent.permission_support import bash, decide, engine, make_project, verdict


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo x > /dev/null 2>&1", "allow"),
        ("echo x > out", "ask"),
        ("> out", "ask"),
        ("echo x >> out", "ask"),
        ("echo x &> out", "ask"),
        ("echo x >| out", "ask"),
        ("cat <> out", "ask"),
        ("cat <<EOF > out\nhi\nEOF", "ask"),
        ("echo x > $F", "ask"),
        ("(echo x) > out", "ask"),
        ("cat < src/a.py", "allow"),
        ("cat < /etc/passwd", "ask"),
        ("cat /etc/passwd", "ask"),
        ("ls ..", "ask"),
        ("cd .. && ls", "ask"),
        ("cd src && git log", "ask"),
        ("cd src; cat ../../outside/x", "ask"),
        ("cd $X && cat y", "ask"),
    ],
)
def test_redirections_and_places_outside_the_project_are_asked_about(
    project: Path, command: str, expected: str
) -> None:
    assert bash(engine(project), project, command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo x > src/out", "allow"),
        ("echo x > ../outside/out", "ask"),
        ("cd src && echo x > ../../outside/y", "ask"),
        ("cd $X && echo x > y", "ask"),
        ("echo x > .git/hooks/pre-commit", "ask"),
        ("echo x > .bashrc", "ask"),
        ("mkdir -p src/new && touch src/new/b.py", "allow"),
        ("rm -r src/new", "allow"),
        ("rm -rf .", "ask"),
        ("rm -rf ../outside", "ask"),
        ("rm -rf .git", "ask"),
        ("rm $X", "ask"),
        ("mv src/a.py src/b.py", "allow"),
        ("cp -t /tmp src/a.py", "ask"),
        ("make", "ask"),
    ],
)
def test_accept_edits_covers_changes_inside_the_project_only(project: Path, command: str, expected: str) -> None:
    assert bash(engine(project, mode="acceptEdits"), project, command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat .env", "deny"),
        ("grep K .env", "deny"),
        ("head -1 ./src/../.env", "deny"),
        ("cat < .env", "deny"),
        ("git show HEAD:.env", "deny"),
        ("cp .env x", "deny"),
        ("cat src/link", "deny"),
        ("python -c 'print(open(\".env\").read())'", "ask"),
        ("cat $F", "ask"),
        ("grep -r K .", "ask"),
        ("rg K", "ask"),
        ("cat .en?", "deny"),
        ("cat src/*.py", "allow"),
        ("echo x > .env", "deny"),
        ("sh -c 'cat .env'", "deny"),
        ("cat src/a.py", "allow"),
    ],
)
def test_a_path_closed_to_read_is_closed_to_readers_in_bash(project: Path, command: str, expected: str) -> None:
    (project / "src" / "link").symlink_to(project / ".env")
    given_engine = engine(project, allow=("Bash(python:*)", "Bash(cat:*)"), deny=("Read(.env)",))
    assert bash(given_engine, project, command) == expected


def test_a_path_closed_to_read_is_closed_to_edit_and_write(project: Path) -> None:
    given_engine = engine(project, allow=("Edit",), deny=("Read(.env)",))
    for tool in ("Read", "Edit", "Write"):
        assert verdict(decide(given_engine, project, tool, {"file_path": ".env"})) == "deny"


def test_denials_hold_after_the_shell_moved_into_a_subfolder(project: Path) -> None:
    given_engine = engine(project, deny=("Read(./secrets/**)",))
    decision = decide(given_engine, project, "Read", {"file_path": "../secrets/k"}, cwd=project / "src")
    assert verdict(decision) == "deny"


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("Edit(src/**)", "src/a.py", "allow"),
        ("Edit(src/**)", "src/../other.py", "ask"),
        ("Edit(src/**)", "other/src/a.py", "ask"),
        ("Edit(*.py)", "deep/down/a.py", "allow"),
        ("Edit(./*.py)", "deep/a.py", "ask"),
        ("Edit(/src/*.py)", "src/a.py", "allow"),
        ("Edit(~/notes/**)", "~/notes/x.md", "allow"),
        ("Edit", "src/a.py", "allow"),
        ("Edit", "../outside/x", "ask"),
        ("Edit(**)", ".git/config", "ask"),
        ("Edit(**)", ".GIT/config", "ask"),
        ("Edit(**)", "sub/.vscode/settings.json", "ask"),
        ("Edit(**)", ".claude/settings.json", "ask"),
        ("Edit(**)", ".pyagent/settings.json", "ask"),
        ("Edit(**)", ".claude/worktrees/w/a.py", "allow"),
        ("Edit(**)", "package.json", "allow"),
        ("Edit(**)", "src/link/evil", "ask"),
        ("Write(src/**)", "src/a.py", "ask"),
    ],
)
def test_path_rules_are_gitignore_patterns_on_resolved_paths(
    project: Path, rule: str, path: str, expected: str
) -> None:
    (project / "src" / "link").symlink_to(project.parent / "outside")
    given_engine = engine(project, allow=(rule,))
    assert verdict(decide(given_engine, project, "Write", {"file_path": path})) == expected


def test_an_absolute_rule_opens_a_path_outside_and_no_other(project: Path) -> None:
    outside = project.parent / "outside"
    given_engine = engine(project, allow=(f"Edit(/{outside}/**)",))
    assert verdict(decide(given_engine, project, "Edit", {"file_path": str(outside / "x")})) == "allow"
    assert verdict(decide(given_engine, project, "Edit", {"file_path": str(outside.parent / "y")})) == "ask"


@pytest.mark.parametrize(
    ("mode", "tool", "path", "expected"),
    [
        ("default", "Edit", "src/a.py", "ask"),
        ("acceptEdits", "Edit", "src/a.py", "allow"),
        ("acceptEdits", "Edit", ".git/config", "ask"),
        ("acceptEdits", "Edit", "../outside/x", "ask"),
        ("plan", "Edit", "src/a.py", "deny"),
        ("plan", "Read", "src/a.py", "allow"),
        ("dontAsk", "Edit", "src/a.py", "deny"),
        ("dontAsk", "Read", "src/a.py", "allow"),
        ("bypassPermissions", "Edit", ".git/config", "allow"),
        ("default", "Read", "src/a.py", "allow"),
        ("default", "Read", "../outside/x", "ask"),
        ("default", "Grep", "../outside", "ask"),
    ],
)
def test_each_mode_does_what_it_says(project: Path, mode: PermissionMode, tool: str, path: str, expected: str) -> None:
    field = "path" if tool == "Grep" else "file_path"
    assert verdict(decide(engine(project, mode=mode), project, tool, {field: path})) == expected


@pytest.mark.parametrize("pattern", ["/etc/*", "../**", "*/../../x", "~/x/*"])
def test_a_glob_that_leaves_the_project_is_asked_about(project: Path, pattern: str) -> None:
    assert verdict(decide(engine(project), project, "Glob", {"pattern": pattern})) == "ask"
    assert verdict(decide(engine(project), project, "Glob", {"pattern": "src/**/*.py"})) == "allow"


def test_plan_mode_denies_commands_that_may_change_something_even_with_a_rule(project: Path) -> None:
    assert bash(engine(project, mode="plan", allow=("Bash(make *)",)), project, "make all") == "deny"
    assert bash(engine(project, mode="plan"), project, "echo x > y") == "deny"


def test_bypass_runs_everything_but_what_is_denied_or_named_in_an_ask_rule(project: Path) -> None:
    given_engine = engine(project, mode="bypassPermissions", deny=("Bash(rm *)",), ask=("Bash(git push *)",))
    assert bash(given_engine, project, "make '") == "allow"
    assert bash(given_engine, project, "echo > $X") == "allow"
    assert bash(given_engine, project, "ls; rm x") == "deny"
    assert bash(given_engine, project, "ls; git push -f") == "ask"


def test_deny_beats_ask_and_ask_beats_allow_however_specific(project: Path) -> None:
    for deny, expected in (((), "ask"), (("Bash(git *)",), "deny")):
        given_engine = engine(project, allow=("Bash(git push origin x)",), ask=("Bash(git push *)",), deny=deny)
        assert bash(given_engine, project, "git push origin x") == expected


@pytest.mark.parametrize("command", ["make all", "make 'a b' > *.txt", "ls *.py; make (", "make a && make b", "rm x*"])
def test_yes_for_the_session_allows_exactly_this_command(project: Path, command: str) -> None:
    given_engine = engine(project)
    decision = decide(given_engine, project, "Bash", {"command": command})
    assert isinstance(decision, Ask)
    if decision.question.session_rule:
        after = given_engine.with_session_rule(decision.question.session_rule)
        assert bash(after, project, command) == "allow"
        assert bash(after, project, command.replace("*", "secret") + " more") == "ask"
        assert bash(after, project, command + "; rm y") == "ask"
    else:
        assert parse_line(command).problem


def test_yes_for_the_session_opens_exactly_this_path(project: Path) -> None:
    given_engine = engine(project)
    target = project / "src" / "odd [name]*.py"
    decision = decide(given_engine, project, "Edit", {"file_path": str(target)})
    assert isinstance(decision, Ask)
    after = given_engine.with_session_rule(decision.question.session_rule)
    assert verdict(decide(after, project, "Edit", {"file_path": str(target)})) == "allow"
    assert verdict(decide(after, project, "Edit", {"file_path": str(project / "src" / "odd n.py")})) == "ask"


def test_protected_paths_offer_no_rule_for_the_session(project: Path) -> None:
    decision = decide(engine(project), project, "Edit", {"file_path": ".git/config"})
    assert isinstance(decision, Ask)
    assert decision.question.session_rule == ""
    assert "git" in decision.question.reason


@pytest.mark.parametrize(
    "command", ["rm -rf .git", "cp x .git/hooks/pre-commit", "tee .bashrc", "sed -i s/a/b/ .npmrc"]
)
def test_commands_that_change_protected_files_ask_even_with_a_rule(project: Path, command: str) -> None:
    assert bash(engine(project, allow=("Bash(*)",)), project, command) == "ask"


def test_the_tools_own_question_is_kept_and_given_its_reason_and_rule(project: Path) -> None:
    own = PermissionQuestion("Edit", "edit", "/x/y", old_text="a", new_text="b")
    decision = decide(engine(project), project, "Edit", {"file_path": "src/a.py"}, question=own)
    assert isinstance(decision, Ask)
    assert (decision.question.old_text, decision.question.new_text) == ("a", "b")
    assert decision.question.reason
    assert decision.question.session_rule.startswith("Edit(//")


def test_a_bare_deny_removes_the_tool_and_a_scoped_one_leaves_it(project: Path) -> None:
    given_engine = engine(project, deny=("Bash", "Read(.env)", "mcp__bad", "mcp__x__get_*"))
    names = ("Read", "Bash", "mcp__bad__a", "mcp__x__get_y", "mcp__x__put")
    assert given_engine.removed_tools(names) == ("Bash", "mcp__bad__a", "mcp__x__get_y")


@pytest.mark.parametrize(
    ("kind", "rule", "tool", "tool_input", "expected"),
    [
        ("allow", "mcp__srv", "mcp__srv__a", {}, "allow"),
        ("allow", "mcp__srv__get_*", "mcp__srv__get_a", {}, "allow"),
        ("allow", "mcp__srv__get_*", "mcp__srv__put_a", {}, "ask"),
        ("allow", "mcp__*", "mcp__srv__a", {}, "ask"),
        ("allow", "*", "mcp__srv__a", {}, "ask"),
        ("deny", "mcp__*", "mcp__srv__a", {}, "deny"),
        ("allow", "WebFetch(domain:example.com)", "WebFetch", {"url": "https://Example.com/x"}, "allow"),
        ("allow", "WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com.evil.io"}, "ask"),
        ("allow", "WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com@evil.io"}, "ask"),
        ("deny", "WebFetch(domain:example.com)", "WebFetch", {"url": "https://ｅxample.com/"}, "deny"),
        ("deny", "WebFetch(domain:example.com)", "WebFetch", {"url": " HTTP://example.com.:8080"}, "deny"),
        ("allow", "WebFetch(domain:*.example.com)", "WebFetch", {"url": "https://a.example.com"}, "allow"),
        ("deny", "Agent(explorer)", "Task", {"subagent_type": "explorer"}, "deny"),
        ("allow", "Skill(deploy)", "Skill", {"skill": "deploy"}, "allow"),
        ("deny", "Fetchy(method:POST)", "Fetchy", {"method": "POST"}, "deny"),
        ("allow", "Fetchy(method:POST)", "Fetchy", {"method": "POST"}, "ask"),
    ],
)
def test_rules_for_other_tools(
    project: Path, kind: str, rule: str, tool: str, tool_input: JsonObject, expected: str
) -> None:
    given_engine = engine(project, **{kind: (rule,)})  # type: ignore[arg-type]
    question = PermissionQuestion(tool, "other", "x")
    assert verdict(decide(given_engine, project, tool, tool_input, question=question)) == expected


def test_a_tool_that_is_harmless_by_its_nature_is_not_asked_about(project: Path) -> None:
    modes: tuple[PermissionMode, ...] = ("default", "plan", "dontAsk")
    for mode in modes:
        assert decide(engine(project, mode=mode), project, "TodoWrite", {}) == Allow()


def test_rules_that_never_match_are_named(project: Path) -> None:
    problems = rule_problems(Settings(allow_rules=("Write(src/**)", "not a rule!", "mcp__*"), deny_rules=("Read(x)",)))
    assert len(problems) == 3
    assert "Edit(src/**)" in problems[0]


def test_denials_say_which_rule_forbade_it(project: Path) -> None:
    decision = decide(engine(project, deny=("Bash(rm *)",)), project, "Bash", {"command": "rm x"})
    assert isinstance(decision, Deny)
    assert "Bash(rm *)" in decision.reason


@given(st.text(max_size=60))
def test_any_text_at_all_is_judged_and_never_crashes(text: str) -> None:
    given_engine = PermissionEngine(Settings(deny_rules=("Read(.env)", "Bash(rm *)")), "default", home=Path("/nowhere"))
    decision = given_engine.decide("Bash", {"command": text}, None, False, Path("/nowhere"), (Path("/nowhere"),))
    assert isinstance(decision, Allow | Ask | Deny)


@given(st.text(alphabet="ab *:\\()'\"$;", min_size=1, max_size=30).filter(lambda text: text.strip() not in ("", "*")))
def test_an_exact_rule_reads_back_as_the_command_it_was_made_from(command: str) -> None:
    rule = parse_rule(exact_bash_rule(command))
    assert rule.spec is not None
    assert rule.spec.replace("\\*", "*") == command.strip()
