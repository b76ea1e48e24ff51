"""Which shell commands run unasked, which are asked about, and which rules find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyagent.agent.permissions import Ask
from tests.agent.permission_support import bash, decide, engine, make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


READ_ONLY = [
    "ls -la src",
    "cat src/a.py | head -20",
    "echo hello $HOME",
    "pwd && git status -sb",
    "git log --oneline -5 -- src",
    "git diff --stat HEAD~1",
    "git --no-pager show HEAD:src/a.py",
    "git branch -a",
    "git stash list",
    "grep -rn 'def main' src",
    "rg -n --glob '*.py' main src",
    "find . -name '*.py' -not -path './node_modules/*'",
    "sed -n '10,20p' src/a.py",
    "wc -l src/*.py 2>/dev/null",
    "sort -u src/a.py | uniq -c",
    "timeout 5 git log",
    "nice -n 5 ls",
    "cd src && ls",
    'for f in a b; do echo "$f"; done',
    "if [ -f src/a.py ]; then cat src/a.py; fi",
    "LC_ALL=C sort src/a.py",
    "python3 --version",
    "x=5; echo $x",
    "cat <<'EOF'\n$(rm x)\nEOF",
    "command -v rg",
    "# just a comment",
    "tree -L 2",
    "date '+%F'",
    "date -d yesterday +%s",
    "head -n 5 src/a.py",
    "git log -n 5 --author x",
    "git diff -M HEAD",
    "echo {a,b}",
    "ls &> /dev/null",
    "git diff 2>&1 | head",
    "git tag -l 'v*'",
    "cat ./src/../src/a.py",
]


@pytest.mark.parametrize("command", READ_ONLY)
def test_commands_known_to_change_nothing_run_unasked(project: Path, command: str) -> None:
    assert bash(engine(project), project, command) == "allow"


@pytest.mark.parametrize("command", READ_ONLY)
def test_commands_known_to_change_nothing_run_in_plan_mode_too(project: Path, command: str) -> None:
    assert bash(engine(project, mode="plan"), project, command) == "allow"


LOOKS_READ_ONLY = [
    "git diff --output=F",
    "git log --output=F",
    "git show --output F",
    "git diff --outp=F",
    "git diff --no-index a b",
    "git diff --ext-diff",
    "git log --textconv -p",
    "git -c core.pager=evil log",
    "git -C /tmp log",
    "git branch -D main",
    "git branch new",
    "git tag v1",
    "git stash",
    "git stash drop",
    "git reflog expire --all",
    "git remote add x y",
    "git config user.name x",
    "git config --get a --unset",
    "git grep -O x",
    "git grep --open-files-in-pager x",
    "git worktree add x",
    "sed -i s/a/b/ f",
    "sed -n 'w out' f",
    "sed -n '1e rm x' f",
    "sed 's/a/b/w out' f",
    "sed -n -e '1p' -e 'w x' f",
    "find . -exec rm {} ;",
    "find . -exec rm {} \\;",
    "find . -delete",
    "find . -fprint out",
    "find . -fls out",
    "find . -ok rm {} \\;",
    "find $X",
    "tree -o out",
    "tree -Lo 2 out",
    "sort -o out in",
    "sort -oout in",
    "sort --output=out in",
    "sort --outp=out in",
    "sort --compress-program=evil in",
    "sort $x",
    "sort {-o,x}",
    "sort *",
    "rg --pre evil x",
    "rg --pre=evil x",
    "rg --hostname-bin=evil x",
    "uniq in out",
    "uniq - out",
    "git diff -M --output=F",
    "git log -n --output=F",
    "git log --author --output=F",
    "git tag -n -d v1",
    "date -I -s x",
    "date 010100002030",
    "date -I 010100002030",
    "find . -name $X",
    'find . -name "$X"',
    "sort -k $X in",
    "diff <(ls) <(rm x)",
    "echo hi >&2 | sh",
    "xargs rm",
    "ls | xargs rm",
    "env rm x",
    "env",
    "date -s 2020-01-01",
    "hostname evil",
    "file -C -m x",
    "awk 'BEGIN{system(\"rm x\")}'",
    "GIT_PAGER=evil git log",
    "GIT_EXTERNAL_DIFF=evil git diff",
    "LD_PRELOAD=./x.so ls",
    "PATH=/tmp/evil; git log",
    "export PATH=/tmp/evil; ls",
    "PATH=. ls",
    "for PATH in /tmp/evil; do ls; done",
    "./ls",
    "l\\s; rm x",
    "$CMD x",
    "printf -v PATH x",
    "test -v 'a[$(rm x)]'",
    "[[ -v 'a[$(rm x)]' ]]",
    "x='a[$(rm y)]'; echo $((x))",
    "[[ $x -eq 1 ]]",
    "echo ${x@P}",
    "echo ${!x}",
    "read PATH",
    "alias ls='rm x'; ls",
    "trap 'rm x' EXIT",
    "coproc rm x",
    "eval ls",
    ". ./x.sh",
    "source x.sh",
    "sh -c ls",
    "cat <<EOF\n$(rm x)\nEOF",
    "cat <<EOF\n`rm x`\nEOF",
    "time -o out ls",
    "timeout -s KILL 5 rm x",
]


@pytest.mark.parametrize("command", LOOKS_READ_ONLY)
def test_flags_and_tricks_that_write_or_run_something_ask(project: Path, command: str) -> None:
    assert bash(engine(project), project, command) == "ask"


JOINED = [
    "git log; rm -rf x",
    "git log && rm -rf x",
    "git log || rm -rf x",
    "git log | rm -rf x",
    "git log |& rm -rf x",
    "git log & rm -rf x",
    "git log\nrm -rf x",
    "git log\rrm -rf x",
    "git log\r\nrm -rf x",
    "git log $(rm -rf x)",
    'git log "$(rm -rf x)"',
    "git log `rm -rf x`",
    "git log <(rm -rf x)",
    "git log >(rm -rf x)",
    "git log ${x:-$(rm -rf x)}",
    'git log <<< "$(rm -rf x)"',
    "X=$(rm -rf x) git log",
    "X=$(rm -rf x); git log",
    "(git log; rm -rf x)",
    "{ git log; rm -rf x; }",
    "! rm -rf x",
    "if rm -rf x; then git log; fi",
    "while git log; do rm -rf x; done",
    "case x in x) rm -rf x;; esac",
    "f() { rm -rf x; }; f",
    "timeout 5 rm -rf x",
    "nohup rm -rf x",
    "time rm -rf x",
    "command rm -rf x",
    "git log; \\rm -rf x",
    'git log; r"m" -rf x',
    "git log \\\n; rm -rf x",
    "git log # \n rm -rf x",
    "git logx",
    "a[$(rm -rf x)]=1 git log",
    "git log > $(rm -rf x)",
    "cat <<EOF | rm -rf x\nhi\nEOF",
    "git log 2>&1 rm; rm -rf x",
]


@pytest.mark.parametrize("command", JOINED)
def test_a_prefix_rule_allows_no_other_command_on_the_same_line(project: Path, command: str) -> None:
    assert bash(engine(project, allow=("Bash(git log:*)",)), project, command) == "ask"


@pytest.mark.parametrize("command", [c for c in JOINED if "rm" in c and "a[" not in c])
def test_a_deny_rule_finds_its_command_wherever_it_hides_in_the_line(project: Path, command: str) -> None:
    given_engine = engine(project, allow=("Bash",), deny=("Bash(rm:*)",))
    assert bash(given_engine, project, command) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "xargs rm",
        "find . -exec rm {} +",
        "env A=1 rm x",
        "sh -c 'rm x'",
        "bash -c 'ls; rm x'",
        "sudo rm x",
        "FOO=1 rm x",
        "/bin/rm x",
        "timeout -k 3 5 rm x",
        "eval 'rm x'",
        "sh -c \"sh -c 'rm x'\"",
    ],
)
def test_a_deny_rule_looks_into_commands_that_run_another(project: Path, command: str) -> None:
    assert bash(engine(project, allow=("Bash",), deny=("Bash(rm *)",)), project, command) == "deny"


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("Bash(npm run build)", "npm run build", "allow"),
        ("Bash(npm run build)", "npm run build --x", "ask"),
        ("Bash(npm run test:*)", "npm run test", "allow"),
        ("Bash(npm run test:*)", "npm run test unit", "allow"),
        ("Bash(npm run test:*)", "npm run tests", "ask"),
        ("Bash(make *)", "make all", "allow"),
        ("Bash(make *)", "make", "allow"),
        ("Bash(make *)", "makefoo", "ask"),
        ("Bash(make*)", "makefoo", "allow"),
        ("Bash(npm * --prod)", "npm run x --prod", "allow"),
        ("Bash(npm test *)", "CI=1 npm test", "allow"),
        ("Bash(npm test *)", "NODE_OPTIONS=--require=x npm test", "ask"),
        ("Bash(npm test *)", "timeout 60 npm test", "allow"),
        ("Bash(npm test *)", "npm test 2>&1 | tail -5", "allow"),
        ("Bash(xargs *)", "xargs rm", "ask"),
        ("Bash(xargs rm)", "xargs rm", "allow"),
        ("Bash(env *)", "env rm x", "ask"),
        ("Bash(sh *)", "sh -c 'rm x'", "ask"),
        ("Bash(find *)", "find . -delete", "ask"),
        ("Bash(find . -delete)", "find . -delete", "allow"),
        ("Bash(find *)", "find . -newermt x", "allow"),
        ("Bash(*)", "make all", "allow"),
        ("Bash", "make all && ./x", "allow"),
        ("Bash", "make '", "ask"),
        ("Bash(:*)", "rm x", "ask"),
    ],
)
def test_bash_rules_match_as_written(project: Path, rule: str, command: str, expected: str) -> None:
    assert bash(engine(project, allow=(rule,)), project, command) == expected


@pytest.mark.parametrize(
    "command",
    [
        "echo 'unclosed",
        "if true; then",
        "echo )",
        "echo " + "x" * 10_001,
        "ls\x00",
        "ls\u00a0x",
        "echo \u202e",
        "(" * 500,
    ],
)
def test_what_cannot_be_parsed_is_asked_about_and_only_for_once(project: Path, command: str) -> None:
    decision = decide(engine(project, allow=("Bash(*)",)), project, "Bash", {"command": command})
    assert isinstance(decision, Ask)
    assert decision.question.session_rule == ""
