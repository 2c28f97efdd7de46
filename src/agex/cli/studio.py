"""``agex studio``: the page over a directory, until Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from agex.cli.history import opened
from agex.errors import StateError
from agex.studio import Api
from agex.studio.server import StudioServer

__all__ = ["serve"]


def serve(directory: Path, branch: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve the state in a directory, and pass the address to *tell*.

    Raises:
        StateError: the directory holds no state, or the port is taken.
    """
    with opened(directory, branch) as state:
        try:
            server = StudioServer(Api(state, directory.resolve().name), port)
        except OSError as error:
            raise StateError(
                f"Port {port} of 127.0.0.1 cannot be had: {error}; give another --port."
            ) from error
        with server:
            tell(server.address)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
