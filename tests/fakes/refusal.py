"""An answer that is an error, in the API's own shape."""

from typing import Any


class Refusal(Exception):
    """The request breaks a rule: HTTP `status`, `error.type` and the text the API gives."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.type, self.message, self.details = status, type, message, details

    def body(self, request_id: str) -> dict[str, Any]:
        """The JSON error body."""
        return error_body(self.type, self.message, request_id, self.details)


def error_body(type: str, message: str, request_id: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """The error shape used by HTTP errors and by `error` events."""
    error: dict[str, Any] = {"type": type, "message": message}
    if details:
        error["details"] = details
    return {"type": "error", "error": error, "request_id": request_id}
