"""``agex studio`` and ``agex studio-site``: the page over a directory, and for a browser tab."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from agex.cli.history import opened
from agex.errors import StateError
from agex.studio import Api
from agex.studio.server import StudioServer
from agex.studio.site import build_site
from agex.studio.site_server import SiteServer

__all__ = ["make_site", "serve", "serve_site"]


def serve(directory: Path, branch: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve the state in a directory, and tell the address.

    Raises:
        StateError: the directory holds no state, or the port is taken.
    """
    with opened(directory, branch) as state:
        try:
            server = StudioServer(Api(state, directory.resolve().name), port)
        except OSError as error:
            raise _taken(port, error) from error
        with server:
            tell(server.address)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()


def make_site(out: Path, pyodide: Path | None, wheels: Path | None, modules: Sequence[str]) -> None:
    """Put the page for a browser tab into a folder.

    Raises:
        StateError: it cannot be done; see `build_site`.
    """
    if pyodide is None or wheels is None:
        raise StateError("Give --pyodide and --wheels: the folders of Pyodide and of the wheels.")
    if not wheels.is_dir():
        raise StateError(f"--wheels {wheels}: there is no such folder.")
    build_site(out, pyodide=pyodide, wheels=wheels.glob("*.whl"), modules=modules)


def serve_site(site: Path, port: int, tell: Callable[[str], None]) -> None:
    """Serve the page for a browser tab until Ctrl-C, and tell the address.

    Raises:
        StateError: the folder is no site, or the port is taken.
    """
    try:
        server = SiteServer(site, port)
    except OSError as error:
        raise _taken(port, error) from error
    with server:
        tell(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def _taken(port: int, error: OSError) -> StateError:
    return StateError(f"Port {port} of 127.0.0.1 cannot be had: {error}; give another --port.")
