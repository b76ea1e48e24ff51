"""The real SDK pointed at a server on this machine."""

import anthropic

from tests.fakes.messages_server import FakeMessagesServer


def client_of(server: FakeMessagesServer, **headers: str) -> anthropic.AsyncAnthropic:
    """A client without retries; keyword arguments are default headers, with `_` for `-`.

    Certificates are not loaded: the connection is plain, and loading them takes 60 ms a client.
    """
    return anthropic.AsyncAnthropic(
        base_url=server.url,
        api_key="k",
        max_retries=0,
        default_headers={name.replace("_", "-"): value for name, value in headers.items()},
        http_client=anthropic.DefaultAsyncHttpxClient(verify=False),
    )
