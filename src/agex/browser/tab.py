"""One conversation with one agent, as a page calls it: every value goes to JSON."""

from __future__ import annotations

import base64
import importlib
import inspect
import json
from collections.abc import Callable
from typing import Any, Self

from agex.agent import Agent, Run
from agex.agent.call.events import ANSWERED
from agex.agent.views.state_history import compare, log
from agex.browser.model import FetchModel
from agex.browser.shown import Showing
from agex.errors import (
    AgexError,
    DefinitionError,
    StateError,
    TaskClarify,
    UnpicklableVariableError,
)
from agex.state import KVStore, Snapshot, Versioned
from agex.state.base import Past

__all__ = ["Tab"]

_PRIMER = """\
You work in a web page, for the person who writes to you there. Files that they drop onto it are in the
workspace. Give back what answers best: a text, a number, a list of records (it is shown as a table), a
DataFrame, a figure. Variables and files that you make stay for later messages."""

_BRANCH = "agex/tab/branch"
"""The key under which the store remembers the branch that the page was on."""
_EARLIER = 10
"""Messages and replies of before that the agent is shown."""
_PAGE = frozenset({"js", "pyodide", "pyodide_js", "micropip", "_pyodide", "_pyodide_core"})
_IN_A_LIST = 20
"""Rows of a table in a list of variables."""


class Tab:
    """A conversation with an agent, its history, and its workspace.

    Args:
        store: where it is kept, a store that this tab alone writes; ``await Tab.open(name)`` keeps it in
            IndexedDB.
        name: of the agent, in events.
        primer: standing instructions beside those of the tab.
        seconds: wall seconds of one action.
        turns: of one task.

    Attributes:
        on_event: called with each event of a task as it happens, as JSON; None for nobody.
        on_token: called with each piece of the model's text; None for nobody.
    """

    def __init__(
        self,
        store: KVStore,
        *,
        name: str = "agent",
        primer: str | None = None,
        seconds: float = 30.0,
        turns: int = 10,
    ) -> None:
        self.on_event: Callable[[str], object] | None = None
        self.on_token: Callable[[str], object] | None = None
        self._store = store
        remembered = store.get(_BRANCH)
        branch = "main" if remembered is None else remembered.decode()
        self._state = Versioned(store, branch=branch, create=True)
        self._agent = Agent(
            name=name,
            primer=_PRIMER if primer is None else f"{_PRIMER}\n\n{primer}",
            state=self._state,
            timeout_seconds=seconds,
            max_iterations=turns,
        )
        self._reply = self._agent.task(reply)
        self._run: Run[Any] | None = None
        self._asked: Run[Any] | None = None

    @classmethod
    async def open(cls, name: str, **settings: Any) -> Self:
        """Open the conversation of that name in this browser, or begin it.

        Args:
            name: of the IndexedDB database.
            **settings: those of the constructor.

        Raises:
            StateConflict: it is open in another tab.
            StateError: this page can keep nothing.
        """
        from agex.browser.indexeddb import IndexedDBStore

        return cls(await IndexedDBStore.open(name), **settings)

    @property
    def state(self) -> Versioned:
        """The history and the workspace, on the branch that the tab is on."""
        return self._state

    # -- one door ----------------------------------------------------------------------------

    async def call(self, method: str, arguments: str = "{}") -> str:
        """Call a method by its name, with a JSON object of its arguments; return JSON.

        What the method raises comes back as ``{"error": {"kind", "message"}}``.
        """
        try:
            if method not in _METHODS:
                raise DefinitionError(f"There is no method {method!r}; there are {', '.join(_METHODS)}.")
            given = json.loads(arguments)
            if not isinstance(given, dict):
                raise DefinitionError(
                    f"The arguments of {method} must be a JSON object, not {arguments[:80]}"
                )
            answer = getattr(self, method)(**given)
            answer = await answer if inspect.isawaitable(answer) else answer
        except (AgexError, TypeError, ValueError, KeyError, OSError, ImportError) as error:
            answer = {"error": _described(error)}
        return json.dumps(answer)

    # -- settings ----------------------------------------------------------------------------

    def use_model(self, url: str, model: str, **settings: Any) -> None:
        """Ask this model from now on; see `FetchModel`. The key stays in memory.

        Raises:
            ModelNotConfigured: the URL or the name cannot be one.
        """
        self._agent.model = FetchModel(url, model, **settings)

    def ask_model(self, model: object) -> None:
        """Ask any model from now on: what ``Agent(model=...)`` takes."""
        self._agent.model = model

    def add_module(self, name: str) -> None:
        """Let the agent's code use an installed package.

        Raises:
            DefinitionError: it would lead to the page.
            ImportError: it is not installed.
        """
        if name.partition(".")[0] in _PAGE:
            raise DefinitionError(f"{name!r} leads to the page, which the agent's code must not reach.")
        self._agent.module(importlib.import_module(name))

    # -- talking -----------------------------------------------------------------------------

    async def ask(self, message: str) -> dict[str, Any]:
        """Let the agent reply to a message.

        Raises:
            InputError: a task is running already.
            ModelNotConfigured: there is no model to ask.
        """
        self._require_idle()
        self._asked = None
        earlier = self._earlier()
        start: Any = self._reply.start  # the options of a call are no part of its signature
        return await self._carried_out(
            start(message, earlier, state=self._state, on_event=self._tell, on_token=self._tell_token)
        )

    async def answer(self, message: str) -> dict[str, Any]:
        """Answer what the agent asked; its task goes on.

        Raises:
            DefinitionError: it asked nothing, or a task is running.
        """
        self._require_idle()
        run, self._asked = self._asked, None
        if run is None:
            raise DefinitionError("The agent has asked nothing; write ask(message).")
        self._run = run
        try:
            await run.aanswer(message)
        except AgexError as error:
            return self._failed(run, error)
        finally:
            self._run = None
        return self._done(run)

    def cancel(self) -> bool:
        """End the running task as soon as it gives the event loop a turn; tell whether there is one."""
        return self._run is not None and self._run.cancel()

    async def _carried_out(self, run: Run[Any]) -> dict[str, Any]:
        self._run = run
        try:
            await run
        except AgexError as error:
            return self._failed(run, error)
        finally:
            self._run = None
        return self._done(run)

    def _done(self, run: Run[Any]) -> dict[str, Any]:
        return {"ok": True, "value": Showing().shown(run.value), **self._about(run)}

    def _failed(self, run: Run[Any], error: AgexError) -> dict[str, Any]:
        asks = isinstance(error, TaskClarify)
        if asks:
            self._asked = run
        return {"ok": False, "error": _described(error), "question": asks, **self._about(run)}

    def _about(self, run: Run[Any]) -> dict[str, Any]:
        usage = run.usage
        return {
            "commit": run.commit,
            "turns": run.turns,
            "seconds": run.duration,
            "usage": {
                "requests": usage.requests,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
            },
        }

    def _earlier(self) -> list[str]:
        """Return what was said before on this branch, a text each."""
        said = []
        for event in self._state.events:
            if event.type == "task_start" and "message" in event.inputs:
                said.append(f"person: {event.inputs['message']}")
            elif event.type == "success":
                said.append(f"you: {event.summary()}")
            elif event.type == "clarify":
                said.append(f"you asked: {event.message}")
            elif event.type == "system_note" and event.message.startswith(ANSWERED):
                said.append(f"person: {event.message.removeprefix(ANSWERED)}")
        return said[-_EARLIER:]

    def _tell(self, event: Any) -> None:
        if self.on_event is not None:
            self.on_event(event.model_dump_json())

    def _tell_token(self, text: str) -> None:
        if self.on_token is not None:
            self.on_token(str(text))

    def _require_idle(self) -> None:
        if self._run is not None:
            raise DefinitionError("A task is running; wait for it, or cancel() it.")

    # -- the workspace -----------------------------------------------------------------------

    def add_file(self, path: str, data: Any) -> dict[str, Any]:
        """Put a file into the workspace, in a commit of its own.

        Args:
            path: relative to the workspace; what stood there is replaced.
            data: its content: bytes, or text in base64.

        Raises:
            DefinitionError: a task is running.
            ValueError: the text is no base64.
        """
        self._require_idle()
        content = base64.b64decode(data, validate=True) if isinstance(data, str) else bytes(data)
        self._agent.fs(self._state).write(path, content)
        return {"path": path, "size": len(content), "commit": self._state.commit(f"file: {path}")}

    def remove_file(self, path: str) -> dict[str, Any]:
        """Take a file out of the workspace, in a commit of its own.

        Raises:
            DefinitionError: a task is running.
            FileNotFoundError: there is none.
        """
        self._require_idle()
        self._agent.fs(self._state).remove(path)
        return {"commit": self._state.commit(f"removed: {path}")}

    # -- looking -----------------------------------------------------------------------------

    def timeline(self, limit: int = 200) -> list[dict[str, Any]]:
        """Return the newest commits of the branch, newest first."""
        return log(self._state, limit)

    def snapshot(self, commit: str | None = None) -> dict[str, Any]:
        """Return the variables, the files and the events of a commit; of the head if not given.

        Raises:
            StateError: there is no such commit.
        """
        past = self._past(commit)
        if past is None:
            return {"commit": None, "variables": [], "files": [], "events": []}
        files = past.files
        return {
            "commit": past.commit.hash,
            "variables": [_variable(past, name, _IN_A_LIST) for name in past],
            "files": [{"path": path, "size": len(files[path])} for path in files],
            "events": [_plain_event(event) for event in past.commit.events],
        }

    def variable(self, name: str, commit: str | None = None) -> dict[str, Any]:
        """Return one variable as it was then.

        Raises:
            KeyError: there is none of that name.
            StateError: there is no such commit.
        """
        past = self._past(commit)
        if past is None or name not in past:
            raise KeyError(f"There is no variable {name!r} at that commit.")
        return _variable(past, name, None)

    def file(self, path: str, commit: str | None = None) -> dict[str, Any]:
        """Return a file as it was then: as text where it is UTF-8, else in base64.

        Raises:
            FileNotFoundError: there is none.
            StateError: there is no such commit.
        """
        past = self._past(commit)
        if past is None or path not in past.files:
            raise FileNotFoundError(f"There is no file {path!r} at that commit.")
        content = past.files[path]
        found: dict[str, Any] = {"path": path, "size": len(content), "text": None, "base64": None}
        try:
            found["text"] = content.decode("utf-8")
        except UnicodeDecodeError:
            found["base64"] = base64.b64encode(content).decode("ascii")
        return found

    def diff(self, old: str, new: str) -> dict[str, Any]:
        """Return what differs between two commits.

        Raises:
            StateError: there is no such commit.
        """
        return compare(self._state, old, new)

    def events(self) -> list[dict[str, Any]]:
        """Return all events of the branch, oldest first."""
        return [_plain_event(event) for event in self._state.events]

    def status(self) -> dict[str, Any]:
        """Return where the tab stands, and what holds the agent's code."""
        model = self._agent.model
        return {
            "branch": self._state.branch,
            "head": self._state.head,
            "model": model.name if isinstance(model, FetchModel) else None,
            "running": self._run is not None,
            "enforcement": self._agent.isolation,
            "unsaved": getattr(self._store, "unsaved", 0),
        }

    def _past(self, commit: str | None) -> Snapshot | None:
        where = commit if commit is not None else self._state.head
        return None if where is None else self._state.checkout(where)

    # -- branches ----------------------------------------------------------------------------

    def branches(self) -> dict[str, Any]:
        """Return the branch this tab is on, and the head of each."""
        return {"current": self._state.branch, "heads": self._state.branches()}

    def fork(self, name: str | None = None, at: str | None = None) -> dict[str, Any]:
        """Begin a branch at a commit (the head if not given), and go on there.

        Raises:
            DefinitionError: a task is running.
            StateError: there is a branch of that name, or no such commit.
        """
        self._require_idle()
        return self._go_on_with(self._state.fork(name, at=at))

    def switch(self, branch: str) -> dict[str, Any]:
        """Go on with another branch.

        Raises:
            DefinitionError: a task is running.
            StateError: there is no such branch.
        """
        self._require_idle()
        if branch not in self._state.branches():
            raise StateError(f"There is no branch {branch!r}; there are {', '.join(self._state.branches())}.")
        return self._go_on_with(Versioned(self._store, branch=branch))

    def _go_on_with(self, state: Versioned) -> dict[str, Any]:
        self._state = self._agent.state = state
        self._asked = None
        self._store.set(_BRANCH, state.branch.encode())
        return self.branches()

    # -- the end -----------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until all that was committed is kept.

        Raises:
            StateError: it could not be.
        """
        flush = getattr(self._store, "flush", None)
        if flush is not None:
            await flush()

    async def close(self) -> None:
        """Keep what was committed and let go of the store: another tab may open it."""
        self.cancel()
        await self.flush()
        self._state.close()


async def reply(message: str, earlier: list[str]) -> Any:
    """Reply to `message`, which a person wrote. What was said before is in `earlier`, oldest first."""


_METHODS = (
    "ask", "answer", "cancel", "use_model", "add_module", "add_file", "remove_file", "timeline", "snapshot",
    "variable", "file", "diff", "branches", "fork", "switch", "events", "status", "flush", "close",
)  # fmt: skip
"""The methods that `Tab.call` may call."""


def _variable(past: Past, name: str, rows: int | None) -> dict[str, Any]:
    try:
        value = past[name]
    except UnpicklableVariableError as error:
        return {"name": name, "type": "", "value": {"kind": "text", "text": str(error).partition("\n")[0]}}
    showing = Showing() if rows is None else Showing(rows)
    return {"name": name, "type": type(value).__name__, "value": showing.shown(value)}


def _plain_event(event: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(event.model_dump_json())
    return data


def _described(error: Exception) -> dict[str, str]:
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return {"kind": type(error).__name__, "message": message}
