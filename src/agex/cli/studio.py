"""``agex studio`` and ``agex studio-site``: the page over a directory, and for a browser tab."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agex.cli.history import opened
from agex.errors import StateError
from agex.state import Versioned
from agex.studio import Api
from agex.studio.server import StudioServer
from agex.studio.site import build_site
from agex.studio.site_server import SiteServer

__all__ = ["make_site", "serve", "serve_site"]


def serve(where: str, branch: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve the state in a directory or in a server, and tell the address.

    Args:
        where: the directory of a Disk store, or the address of a server: ``postgresql://...``, ``redis://...``.
        branch: to look at first.
        port: of 127.0.0.1; 0 takes a free one.
        tell: called with the address.

    Raises:
        StateError: there is no state, or the port is taken.
    """
    with _state_at(where, branch) as (state, name):
        try:
            server = StudioServer(Api(state, name), port)
        except OSError as error:
            raise _taken(port, error) from error
        with server:
            tell(server.address)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()


@contextlib.contextmanager
def _state_at(where: str, branch: str) -> Iterator[tuple[Versioned, str]]:
    """Open a state that is there, and say what to call it: never by an address with a password in it."""
    scheme, is_address, rest = where.partition("://")
    if not is_address:
        directory = Path(where)
        with opened(directory, branch) as state:
            yield state, directory.resolve().name
        return
    if scheme not in _SERVERS:
        raise StateError(f"{scheme}:// is no address of a state; known are {', '.join(_SERVERS)}.")
    store = _SERVERS[scheme](where)
    try:
        there = Versioned(store).branches()
        if not there:
            raise StateError(f"The {scheme} server holds no state; give the address that the tasks use.")
        if branch not in there:
            raise StateError(f"There is no branch {branch!r} there; there are: {', '.join(sorted(there))}.")
        yield Versioned(store, branch=branch), rest.rpartition("@")[2].partition("?")[0]
    finally:
        store.close()


def _postgres(address: str) -> Any:
    from agex.state.postgres import PostgresStore

    return PostgresStore(address)


def _redis(address: str) -> Any:
    from agex.state.redis import RedisStore

    return RedisStore(address)


_SERVERS = {"postgresql": _postgres, "postgres": _postgres, "redis": _redis, "rediss": _redis}


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
