"""The environment commands run in: the user's own, without secrets, and without anything that could ask a question."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

_SECRET_NAMES = re.compile(
    r"""
      ^ANTHROPIC_           # our own credentials, and the endpoint they belong to
    | ^CLAUDE_CODE_.*(TOKEN|KEY)   # the same, of a related agent
    | ^PYAGENT_.*(TOKEN|KEY)
    | (^|_)API_?KEY(S|_ID|_\d+)?$  # OPENAI_API_KEY and its many siblings
    | (^|_)(ACCESS|AUTH|BEARER|REFRESH|SESSION|ID)?_?TOKEN(_FILE)?$  # GH_TOKEN, NPM_TOKEN, AWS_SESSION_TOKEN …
    | (^|_)(CLIENT_|APP_)?SECRET(S|_KEY|_ACCESS_KEY|_TOKEN)?$  # AWS_SECRET_ACCESS_KEY, CLIENT_SECRET …
    | (^|_)PASS(WD|WORD|PHRASE)?$  # PGPASSWORD is matched below: it has no underscore
    | ^(PGPASSWORD|MYSQL_PWD|RESTIC_PASSWORD.*|SSHPASS|DOCKER_AUTH_CONFIG|TWINE_PASSWORD)$
    | (^|_)PRIVATE_KEY(_.*)?$
    | (^|_)CREDENTIALS?(_JSON)?$   # whole key files pasted into a variable
    | ^(DATABASE_URL|REDIS_URL|MONGO(DB)?_UR[IL]|SENTRY_DSN)$  # a password is part of the URL
    | ^(AZURE|GOOGLE)_.*(KEY|SECRET)$
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""A model that prints the environment must not send the user's credentials anywhere, and a command it was talked into
must not find them. What a project's commands do need is named in the setting `bash_allowed_secrets`."""

_NOT_SECRET = frozenset({"SSH_AUTH_SOCK", "GPG_TTY"})

_NO_EDITOR = "sh -c 'echo \"There is no editor here: give the text on the command line (git: -m, -F).\" >&2; exit 1' --"
"""Fails, and says what to do. An editor that did nothing would let `git rebase -i` run unseen."""

NON_INTERACTIVE: Mapping[str, str] = {
    "GIT_EDITOR": _NO_EDITOR,
    "GIT_SEQUENCE_EDITOR": _NO_EDITOR,
    "EDITOR": "false",
    "VISUAL": "false",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "AWS_PAGER": "",
    "DELTA_PAGER": "cat",
    "BAT_PAGER": "cat",
    # Programs that ask through a helper instead of the terminal get a helper that fails.
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "force",
    "SUDO_ASKPASS": "/bin/false",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
    "NPM_CONFIG_YES": "true",
    "PYTHON_BASIC_REPL": "1",
    # No colours, no cursor movement. CI is not set: test runners and bundlers change what they do under it.
    "TERM": "dumb",
}

_OF_ONE_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS1"})
"""Left out of the snapshot: they belong to the shell that printed it, or make a shell run something at its start."""


def is_secret_name(name: str, allowed: Collection[str] = ()) -> bool:
    return name not in allowed and name not in _NOT_SECRET and _SECRET_NAMES.search(name) is not None


def child_environment(
    base: Mapping[str, str], login: Mapping[str, str], extra: Mapping[str, str], allowed_secrets: Collection[str]
) -> dict[str, str]:
    """What a command gets: our own environment, filled up from the login shell, then the user's settings.

    Our own wins, since it carries the activated virtual environment the user started us in; of PATH the login
    shell's folders are added at the end.
    """
    merged = {name: value for name, value in login.items() if name not in _OF_ONE_SHELL} | dict(base)
    folders = [*base.get("PATH", "").split(os.pathsep), *login.get("PATH", "").split(os.pathsep)]
    merged["PATH"] = os.pathsep.join(dict.fromkeys(folder for folder in folders if folder)) or os.defpath
    merged.pop("BASH_ENV", None)
    merged.pop("ENV", None)
    clean = {name: value for name, value in merged.items() if not is_secret_name(name, allowed_secrets)}
    return {**clean, **NON_INTERACTIVE, **extra}
