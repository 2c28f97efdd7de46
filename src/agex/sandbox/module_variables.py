"""Variables that are modules: named as an import statement names them, and imported again.

A module is no value. What outlives a session is its name, and those of the modules in it that were imported:
``import xml.etree.ElementTree`` binds ``xml``, which is nothing without them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards
    from agex.sandbox.runtime.result import Result

__all__ = ["Modules"]


class _Session(Protocol):
    @property
    def namespace(self) -> dict[str, Any]: ...

    def add(self, names: Mapping[str, Any]) -> None: ...

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result: ...


class Modules:
    """The modules that the guest of one session has, and can have.

    Args:
        session: whose variables they are among.
        guards: of the session.
    """

    def __init__(self, session: _Session, guards: Guards) -> None:
        self._session = session
        self._guards = guards
        self._missing: dict[str, tuple[Any, str]] = {}
        """The markers of modules that could not be imported again, and what to import, by variable."""

    def imported(self, name: str, inside: Iterable[str] = (), *, run: bool = False) -> Any:
        """Return a module as the guest gets it, once those in it are imported.

        With *run* modules of the guest's own that are not loaded yet are run for it, under limits.

        Raises:
            ImportError: it is not granted.
        """

        def work() -> Any:
            for each in inside:
                self._guards.import_(each)
            return self._guards.import_(name, None, None, ("*",))

        try:
            return work()
        except ImportError:
            own = self._guards.imports
            if not run or own is None or all(own.file_of(each) is None for each in (name, *inside)):
                raise
        result = self._session.call(work)
        if result.error is not None:
            raise ImportError(f"{name} cannot be imported: {result.error}") from result.error
        return result.value

    def bound(self) -> dict[str, str]:
        """Return the variables that are modules, each with what to import: its name, then modules in it."""
        importer, found = self._guards.importer, dict[str, str]()
        for name, value in self._session.namespace.items():
            marker, text = self._missing.get(name, (None, ""))
            if marker is not None and value is marker:
                found[name] = text
            elif type(value) is types.ModuleType and (home := importer.name_of(value)) is not None:
                found[name] = " ".join((home, *importer.modules_in(home)))
        return found

    def restore(self, modules: Mapping[str, str]) -> None:
        """Bind variables to modules, as `bound` named them, under the grants of the session.

        Where a module cannot be imported now, its variable says so when it is used.
        """
        for name, text in modules.items():
            home, *inside = text.split(" ")
            try:
                module = self.imported(home, inside, run=True)
            except ImportError as error:
                module = _marker(name, home, error)
                self._missing[name] = module, text
            self._session.add({name: module})


def _marker(name: str, home: str, error: ImportError) -> Any:
    from agex.values import NotKept

    reason = str(error)
    return NotKept(name, "module", reason if home in reason else f"{home}: {reason}")
