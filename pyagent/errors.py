"""The one base class of everything a user may be shown."""


class PyagentError(Exception):
    """An error to show to the user: `message` says what happened, `hint` what to try next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    @property
    def kind(self) -> str:
        """The sort of error, for programs: the name of its nearest class in this module, else its own."""
        names = [cls.__name__ for cls in type(self).__mro__ if cls.__module__ == __name__ and cls is not PyagentError]
        return names[0] if names else type(self).__name__


class UsageError(PyagentError):
    """A flag, command or setting the user gave cannot be used as it stands."""


class SessionError(PyagentError):
    """A session file cannot be opened, read or written."""


class SessionLockedError(SessionError):
    """Another process writes this session."""


READING = "This session is open for reading only."
READING_HINT = "Go on in a copy: /branch, or start with --fork-session."


class ReadOnlyError(SessionError):
    """Something would change a session that is open for reading."""

    def __init__(self) -> None:
        super().__init__(READING, hint=READING_HINT)


class ModelError(PyagentError):
    """A model call ended without a usable answer; the subclass says why."""


class CredentialsError(ModelError):
    """No credentials, or the server refused them (401, 403)."""


class ModelUnavailableError(ModelError):
    """The server could not be reached or kept failing until the retries ran out."""


class RequestRefusedError(ModelError):
    """The server refused the request for good (400, 402, 404, 422): sending it again would not help."""


class BrokenStreamError(ModelError):
    """The answer's stream ended, stalled or was garbled before it was complete."""


class PromptTooLongError(ModelError):
    """The request does not fit: tokens over the window, or bytes over the body limit.

    `prompt_tokens` and `limit_tokens` are what the server named, None where it named nothing;
    `is_byte_limit` is True for a body over the size limit (413).
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        prompt_tokens: int | None = None,
        limit_tokens: int | None = None,
        is_byte_limit: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.prompt_tokens, self.limit_tokens, self.is_byte_limit = prompt_tokens, limit_tokens, is_byte_limit

    @property
    def gap_tokens(self) -> int | None:
        """How many tokens must go, if the server named both figures."""
        if self.prompt_tokens is None or self.limit_tokens is None:
            return None
        return max(self.prompt_tokens - self.limit_tokens, 1)
