"""Shell commands known to change nothing, each with the flags known to be harmless.

A flag that is not listed, a value only the shell can know, or a glob where a file's name could pass as a flag: then
the command is not vouched for here and the permission engine asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pyagent.agent.shell_grammar import SimpleCommand, Word

Positional = Literal["paths", "pattern", "any", "none"]
"""What the words that are no flags are: paths; a pattern and then paths; anything but paths; or not allowed."""


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """A verdict: this command changes nothing. `paths` is what it reads, as far as the words say."""

    paths: tuple[Word, ...] = ()
    is_recursive: bool = False


@dataclass(frozen=True, slots=True)
class _Spec:
    short: str = ""
    """Letters that take no value."""
    short_valued: str = ""
    long: frozenset[str] = frozenset()
    """Names without the dashes; a trailing `=` means it takes a value, `?` that it may."""
    positional: Positional = "paths"
    max_positional: int = 1_000
    has_number_flag: bool = False
    """`-20` is a count."""
    is_harmless: bool = False
    """No flag of it can write or run anything, so all are fine, and so is a file whose name looks like one."""
    pattern_flags: tuple[str, ...] = ()
    """With one of these the pattern is given, and every other word is a path."""
    recursive_flags: tuple[str, ...] = ()
    has_attached_values: bool = True
    """Whether `-n5` is `-n 5`. If not, what follows the letter is further flags."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PATHS = _Spec(is_harmless=True)
_ANY = _Spec(is_harmless=True, positional="any")
_GREP = _Spec(
    is_harmless=True,
    short_valued="efmABCd",
    positional="pattern",
    pattern_flags=("-e", "-f", "--regexp", "--file"),
    recursive_flags=("-r", "-R", "--recursive", "--dereference-recursive"),
)

_COMMANDS: dict[str, _Spec] = {
    **dict.fromkeys(
        _names(
            "ls cat head tail wc stat du df readlink realpath tac nl rev fold cmp md5sum sha1sum sha256sum sha512sum "
            "cksum strings od hexdump cut paste join comm diff cd"
        ),
        _PATHS,
    ),
    **dict.fromkeys(
        _names("echo pwd true false : basename dirname which whoami id uname nproc arch seq sleep tr test [ printf"),
        _ANY,
    ),
    **dict.fromkeys(_names("grep egrep fgrep zgrep"), _GREP),
    "file": _Spec(short="bikLhzZ0s", long=_names("brief mime mime-type mime-encoding dereference")),
    "uniq": _Spec(
        short="cdDuiz", short_valued="fsw", long=_names("count repeated unique ignore-case"), max_positional=1
    ),
    "date": _Spec(short="uR", long=_names("utc iso-8601? rfc-3339= rfc-email"), positional="any", short_valued="dI"),
    "sort": _Spec(
        short="bdfgiMhnRrVcCmsuz",
        short_valued="kt",
        long=_names(
            "ignore-case numeric-sort reverse unique human-numeric-sort version-sort key= field-separator= check? "
            "stable"
        ),
    ),
    "tree": _Spec(
        short="adfilxpughDFrtUJXCnvcsNqS",
        short_valued="LPI",
        has_attached_values=False,
        long=_names(
            "noreport dirsfirst filesfirst prune du si gitignore matchdirs ignore-case charset= sort= filelimit= "
            "inodes device"
        ),
        recursive_flags=("",),
    ),
    "rg": _Spec(
        short="inlcvwxsSFPUNHIoLqpu0.",
        short_valued="eABCmgtTMdjEr",
        long=_names(
            "files files-with-matches files-without-match count count-matches ignore-case smart-case case-sensitive "
            "fixed-strings word-regexp line-regexp invert-match line-number no-line-number hidden no-ignore "
            "no-ignore-vcs glob= iglob= type= type-not= type-list max-count= max-depth= max-columns= after-context= "
            "before-context= context= multiline multiline-dotall only-matching pcre2 heading no-heading "
            "with-filename no-filename color= colors= sort= sortr= regexp= json stats trim column vimgrep passthru "
            "quiet text null version replace= no-messages"
        ),
        positional="pattern",
        pattern_flags=("-e", "--regexp", "--files", "--type-list"),
        recursive_flags=("",),
    ),
    "jq": _Spec(
        short="rcesnSjaCM",
        long=_names(
            "raw-output compact-output exit-status slurp null-input sort-keys join-output tab indent= color-output"
        ),
        positional="pattern",
    ),
    "ps": _Spec(short="aAefFlxuwHjL", short_valued="opC", long=_names("forest sort= no-headers"), positional="any"),
    "column": _Spec(short="tnxe", short_valued="sc", long=_names("table separator=")),
    "free": _Spec(short="bkmghtw", positional="none"),
    "uptime": _Spec(short="ps", positional="none"),
    "hostname": _Spec(short="fisIdA", positional="none"),
    "type": _ANY,
}

_VERSION_ONLY = _names(
    "python python3 pip pip3 node npm npx yarn pnpm cargo rustc gcc g++ clang make cmake java ruby perl uv ruff "
    "mypy pytest git go docker"
)
"""Asking these for their version runs nothing of the project."""

_LOG_FLAGS = _names(
    "oneline graph all stat? shortstat numstat name-only name-status patch no-patch decorate? no-decorate "
    "abbrev-commit abbrev? no-abbrev-commit pretty? format= max-count= skip= since= after= until= before= author= "
    "committer= grep= invert-grep all-match regexp-ignore-case extended-regexp fixed-strings perl-regexp reverse "
    "follow merges no-merges first-parent date= date-order topo-order author-date-order relative-date cached staged "
    "color? no-color word-diff? word-diff-regex= color-words? unified= ignore-all-space ignore-space-change "
    "ignore-space-at-eol ignore-blank-lines diff-filter= find-renames? find-copies? no-renames summary raw minimal "
    "patience histogram diff-algorithm= check exit-code quiet full-index binary relative? no-ext-diff no-textconv "
    "branches? tags? remotes? left-right cherry-pick cherry-mark source compact-summary dirstat? ignore-submodules? "
    "merge-base function-context inter-hunk-context= text pickaxe-regex pickaxe-all no-walk? boundary "
    "simplify-by-decoration full-history ancestry-path parents children walk-reflogs no-prefix reflog root"
)
_LOG = _Spec(short="psiEFPwbzqaRWcmgNrtu", short_valued="nUSGLMC", long=_LOG_FLAGS, has_number_flag=True)

_GIT: dict[str, _Spec] = {
    **dict.fromkeys(_names("log diff show whatchanged rev-list diff-tree diff-index"), _LOG),
    "shortlog": _Spec(short="nsec", long=_LOG_FLAGS | _names("numbered summary email group=")),
    "status": _Spec(
        short="sbvuz",
        long=_names(
            "short branch show-stash porcelain? long verbose untracked-files? ignored? column? ahead-behind no-renames"
        ),
    ),
    "blame": _Spec(
        short="ltfnsewbpcM",
        short_valued="LC",
        long=_names("porcelain line-porcelain date= color-lines show-email root since="),
    ),
    "annotate": _Spec(short="l", short_valued="L"),
    "ls-files": _Spec(
        short="cdmosukzt",
        short_valued="xX",
        long=_names(
            "cached deleted modified others stage unmerged exclude= exclude-standard full-name abbrev? "
            "error-unmatch eol directory"
        ),
    ),
    "ls-tree": _Spec(short="drtlz", long=_names("name-only name-status long full-name full-tree abbrev? format=")),
    "rev-parse": _Spec(
        short="q",
        long=_names(
            "verify short? abbrev-ref? symbolic symbolic-full-name show-toplevel show-prefix show-cdup git-dir "
            "git-common-dir absolute-git-dir is-inside-work-tree is-inside-git-dir is-bare-repository "
            "is-shallow-repository all branches? tags? remotes?"
        ),
    ),
    "describe": _Spec(
        long=_names(
            "all tags always contains abbrev= dirty? broken? long match= exclude= exact-match first-parent candidates="
        )
    ),
    "cat-file": _Spec(short="tsep"),
    "merge-base": _Spec(short="a", long=_names("all octopus independent is-ancestor fork-point")),
    "name-rev": _Spec(long=_names("tags name-only refs= always all")),
    "count-objects": _Spec(short="vH", long=_names("verbose human-readable"), positional="none"),
    "for-each-ref": _Spec(long=_names("format= sort= count= contains= merged= no-merged= points-at=")),
    "grep": _Spec(
        short="niwlLcIEFGPvhHoqpW",
        short_valued="eABCm",
        long=_names(
            "line-number ignore-case word-regexp files-with-matches count extended-regexp fixed-strings perl-regexp "
            "cached untracked show-function function-context heading break color? no-color name-only max-depth= "
            "all-match and or not"
        ),
        recursive_flags=("",),
    ),
    "branch": _Spec(
        short="arvl",
        long=_names(
            "all remotes list verbose show-current contains= no-contains= merged? no-merged? sort= format= "
            "points-at= color? no-color column?"
        ),
        positional="none",
    ),
    "tag": _Spec(
        short="l",
        short_valued="n",
        long=_names("list contains= merged= no-merged= sort= format= points-at= column?"),
        positional="none",
    ),
    "remote": _Spec(short="v", long=_names("verbose"), positional="none"),
    "version": _Spec(positional="none"),
}
_GIT_PAIRS: dict[tuple[str, str], _Spec] = {
    ("stash", "list"): _LOG,
    ("stash", "show"): _LOG,
    ("reflog", "show"): _LOG,
    ("worktree", "list"): _Spec(short="vz", long=_names("porcelain verbose"), positional="none"),
    ("remote", "get-url"): _Spec(long=_names("all push"), positional="any"),
    ("branch", "--list"): _Spec(short="arv", long=_names("all remotes verbose sort= format="), positional="any"),
    ("tag", "-l"): _Spec(long=_names("sort= format="), positional="any"),
    ("tag", "--list"): _Spec(long=_names("sort= format="), positional="any"),
    ("config", "--get"): _Spec(positional="any", max_positional=1),
    ("config", "--get-all"): _Spec(positional="any", max_positional=1),
    ("config", "--list"): _Spec(long=_names("show-origin show-scope local global system name-only"), positional="none"),
    ("config", "-l"): _Spec(long=_names("show-origin show-scope local global system name-only"), positional="none"),
}

_FIND_FLAGS = _names(
    "-H -L -P -print -print0 -ls -prune -empty -readable -writable -executable -not -and -or -a -o -true -false "
    "-depth -xdev -mount -daystart -follow -nouser -nogroup -quit ! ( ) ,"
)
_FIND_VALUED = _names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -mtime -mmin -atime -amin "
    "-ctime -cmin -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -samefile "
    "-regextype -fstype -printf"
)

_SED_PRINT = re.compile(r"(?:\$|\d+(?:[,~+]\+?(?:\d+|\$))?)?\s*[pq=](?:\s*;\s*(?:\$|\d+(?:,(?:\d+|\$))?)\s*[pq=])*;?")
"""`12p`, `10,20p`, `10,20p;30q`: printing only. Everything else in sed may write (`w`) or run (`e`)."""

SAFE_VARIABLES = _names(
    "LANG LANGUAGE LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME TZ TERM COLUMNS LINES NO_COLOR "
    "FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI DEBUG VERBOSE NODE_ENV RAILS_ENV PYTHONUNBUFFERED "
    "PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING RUST_BACKTRACE RUST_LOG GOOS GOARCH "
    "CGO_ENABLED GO111MODULE"
)
"""Variables that change how a command speaks, never what it runs."""

_OWN_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*")
_SPECIAL_LOWER = _names("http_proxy https_proxy all_proxy no_proxy ftp_proxy _")


def is_safe_variable(name: str) -> bool:
    """Whether setting it in front of a command leaves open what that command runs."""
    return name in SAFE_VARIABLES


def is_own_variable(name: str) -> bool:
    """Whether it is a script's own variable: lower case, and none that programs look at."""
    return is_safe_variable(name) or (_OWN_VARIABLE.fullmatch(name) is not None and name not in _SPECIAL_LOWER)


def read_only(command: SimpleCommand) -> ReadOnly | None:
    """The verdict, or None if nothing vouches for the command."""
    if not command.words:
        return ReadOnly() if all(is_own_variable(name) for name, _ in command.assignments) else None
    if not all(is_safe_variable(name) for name, _ in command.assignments):
        return None
    head, *rest = command.words
    if head.value is None or head.value != head.source:
        return None
    arguments = tuple(rest)
    match head.value:
        case "export" | "local" | "declare" | "typeset" | "readonly":
            names = [(word.value or "").partition("=")[0] for word in arguments]
            return ReadOnly() if all(is_own_variable(name) for name in names) else None
        case "command" if arguments and arguments[0].value in ("-v", "-V"):
            return ReadOnly()
        case "read" if all(is_own_variable(word.value or "-") or word.value == "-r" for word in arguments):
            return ReadOnly()
        case "printf" if arguments and (arguments[0].value is None or arguments[0].value.startswith("-")):
            return None
        case "test" | "[" if any(word.value in ("-v", "-R", None) for word in arguments):
            return None
        case "date" if any(
            not (word.value or "").startswith(("+", "-")) and not (at and arguments[at - 1].value in ("-d", "--date"))
            for at, word in enumerate(arguments)
        ):
            return None
        case "find":
            return _find(arguments)
        case "sed":
            return _sed(arguments)
        case "git":
            return _git(arguments)
        case name if name in _VERSION_ONLY and [word.value for word in arguments] in (
            ["--version"],
            ["-V"],
            ["version"],
        ):
            return ReadOnly()
        case name if name in _COMMANDS:
            return _judge(_COMMANDS[name], arguments)
        case _:
            return None


def _judge(spec: _Spec, arguments: tuple[Word, ...]) -> ReadOnly | None:
    positional: list[Word] = []
    has_pattern = spec.positional != "pattern"
    is_recursive = "" in spec.recursive_flags
    at, is_over = 0, False
    while at < len(arguments):
        word = arguments[at]
        at += 1
        value = word.value
        if value is None:
            if spec.positional == "any" and spec.is_harmless:
                continue
            return None
        if word.has_glob and value[:1] in "*?[" and not spec.is_harmless and not is_over:
            return None
        if is_over or not value.startswith("-") or value == "-":
            positional.append(word)
            continue
        if value == "--":
            is_over = True
            continue
        name, equals, given = value.partition("=")
        is_recursive = is_recursive or name in spec.recursive_flags
        has_pattern = has_pattern or name in spec.pattern_flags
        if spec.has_number_flag and re.fullmatch(r"-\d+", value):
            continue
        if value.startswith("--"):
            if spec.is_harmless:
                if equals and spec.positional != "any":
                    positional += [Word(given, given)] if "/" in given or "." in given else []
                continue
            long = name[2:]
            if long + "=" in spec.long:
                if not equals and not _is_value(arguments, at):
                    return None
                at += 0 if equals else 1
            elif not (long + "?" in spec.long or (long in spec.long and not equals)):
                return None
            continue
        for index, letter in enumerate(value[1:], start=1):
            is_recursive = is_recursive or f"-{letter}" in spec.recursive_flags
            if letter in spec.short_valued:
                has_pattern = has_pattern or f"-{letter}" in spec.pattern_flags
                if value[index + 1 :] and not spec.has_attached_values:
                    return None
                if not value[index + 1 :] and not spec.is_harmless and not _is_value(arguments, at):
                    return None
                at += 0 if value[index + 1 :] else 1
                break
            if letter not in spec.short and not spec.is_harmless:
                return None
    if not has_pattern:
        positional = positional[1:]
    if (spec.positional == "none" and positional) or len(positional) > spec.max_positional:
        return None
    paths = () if spec.positional == "any" else tuple(word for word in positional if word.value != "-")
    return ReadOnly(paths, is_recursive)


def _is_value(arguments: tuple[Word, ...], at: int) -> bool:
    """Whether the word there can only be the value of the flag before it.

    Some flags take a value only when it is attached: a flag behind one of those must not pass for its value.
    """
    return at < len(arguments) and arguments[at].value is not None and not (arguments[at].value or "").startswith("-")


def _find(arguments: tuple[Word, ...]) -> ReadOnly | None:
    paths: list[Word] = []
    has_expression = False
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word.value is None or (word.has_glob and word.value[:1] in "*?["):
            return None
        if word.value in _FIND_VALUED:
            has_expression = True
            if at < len(arguments) and arguments[at].value is None:
                return None
            at += 1
        elif word.value in _FIND_FLAGS:
            has_expression = has_expression or word.value not in ("-H", "-L", "-P")
        elif word.value.startswith("-") or has_expression:
            return None
        else:
            paths.append(word)
    return ReadOnly(tuple(paths))


def _sed(arguments: tuple[Word, ...]) -> ReadOnly | None:
    """Only `sed -n '<lines>p' file…`."""
    flags = [word for word in arguments if (word.value or "").startswith("-")]
    rest = [word for word in arguments if not (word.value or "").startswith("-")]
    if (
        any(word.value is None for word in rest)
        or not rest
        or not all(f.value in ("-n", "-E", "-r", "--quiet") for f in flags)
    ):
        return None
    if not _SED_PRINT.fullmatch((rest[0].value or "").strip()) or any(word.has_glob for word in rest):
        return None
    return ReadOnly(tuple(rest[1:]))


def _git(arguments: tuple[Word, ...]) -> ReadOnly | None:
    while arguments and arguments[0].value in ("--no-pager", "--no-optional-locks", "-P"):
        arguments = arguments[1:]
    values = [word.value for word in arguments]
    if values in (["--version"], ["reflog"], ["stash", "list"]):
        return ReadOnly()
    if len(values) >= 2:
        pair = (values[0] or "", values[1] or "")
        if pair in _GIT_PAIRS:
            return _judge(_GIT_PAIRS[pair], arguments[2:])
    if not values or values[0] not in _GIT:
        return None
    return _judge(_GIT[values[0]], arguments[1:])


READERS = _names(
    "cat head tail less more tac nl grep egrep fgrep zgrep rg ag ack sed awk gawk cut sort uniq wc diff cmp comm "
    "paste join strings od hexdump xxd base64 base32 md5sum sha1sum sha256sum sha512sum file stat jq yq bat view "
    "vim vi nano emacs cp mv ln dd tar zip gzip scp rsync source . tee openssl git fold rev column iconv split"
)
"""Commands that show or copy the files they are given: a path closed to Read is closed to them."""
