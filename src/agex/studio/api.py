"""The page's questions about a state, by path: plain JSON in and out, over any transport.

``agex studio`` carries it over HTTP, a browser tab by messages to its worker.
"""

from __future__ import annotations

import base64
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from agex.agent import ActionEvent, SuccessEvent, SystemNoteEvent, TaskStartEvent
from agex.agent.call.events import CancelledEvent, ClarifyEvent, ErrorEvent, FailEvent
from agex.agent.durable.decisions import answer, decide, waiting_runs
from agex.agent.views import state_history as past
from agex.errors import AgexError, StateError, UnpicklableVariableError
from agex.models.base import Usage
from agex.state import Commit, Snapshot, Versioned
from agex.state.tables import names_of
from agex.studio.looks import file_look, look
from agex.studio.steps import steps

__all__ = ["Api", "NotHere", "Refused"]

COMMITS = 500
"""Listed at most; what lies further back is reached by forking there with ``agex fork``."""
LINE_CHARS = 300
"""Of a variable in the list of them all."""
LARGE = 32 * 1024 * 1024
"""Bytes of a variable that is read only when somebody asks for it."""
LARGEST = 256 * 1024 * 1024
"""Bytes of a variable or file that the page does not read at all."""
HITS = 50
"""Of a search."""
AROUND = 60
"""Characters that are shown on either side of what was found."""
NAME_CHARS = 100
"""Of a branch."""


class Refused(Exception):
    """The question makes no sense; the message says why."""


class NotHere(Refused):
    """There is no such commit, variable, file or question."""


Query = Mapping[str, str]

_SPOKEN = (TaskStartEvent, SuccessEvent, FailEvent, ClarifyEvent, CancelledEvent)


class Api:
    """Answers questions about one state. Safe to share between threads.

    Args:
        state: whose store is shown, all its branches.
        name: what the page calls it.
    """

    def __init__(self, state: Versioned, name: str) -> None:
        self.state = state
        self.name = name
        self._lock = threading.Lock()
        """One question at a time: a page asks several at once, and each may read large values."""
        self._asked: dict[str, Callable[[Query], Any]] = {
            "heads": self._heads,
            "timeline": self._timeline,
            "commit": self._commit,
            "variables": self._variables,
            "variable": self._variable,
            "files": self._files,
            "file": self._file,
            "bytes": self._bytes,
            "diff": self._diff,
            "search": self._search,
        }
        self._told: dict[str, Callable[[Query], Any]] = {"fork": self._fork, "decide": self._decide}

    def ask(self, what: str, query: Query) -> Any:
        """Answer a question; nothing is changed.

        Raises:
            NotHere: there is no such question, or nothing that it is about.
            Refused: a part of the question is missing or wrong.
        """
        return self._answered(self._asked, what, query)

    def tell(self, what: str, query: Query) -> Any:
        """Do what changes something: ``fork``, ``decide``.

        Raises:
            NotHere: there is nothing of that name to do.
            Refused: it cannot be done so.
        """
        return self._answered(self._told, what, query)

    @property
    def changes(self) -> frozenset[str]:
        """The kinds of message that `tell` accepts."""
        return frozenset(self._told)

    def _answered(self, known: Mapping[str, Callable[[Query], Any]], what: str, query: Query) -> Any:
        if what not in known:
            raise NotHere(f"There is nothing called {what!r} here; there are: {', '.join(known)}.")
        try:
            with self._lock:
                return known[what](query)
        except StateError as error:
            raise Refused(str(error)) from error

    # -- questions ---------------------------------------------------------------------------

    def _heads(self, _query: Query) -> Any:
        return {"branches": self.state.branches(), "tags": self.state.tags()}

    def _timeline(self, query: Query) -> Any:
        branches = self.state.branches()
        branch = query.get("branch") or self.state.branch
        if branch not in branches and branches:
            branch = self.state.branch if self.state.branch in branches else min(branches)
        commits = self.state.history(branches[branch]) if branch in branches else iter(())
        names = names_of(self.state)
        return {
            "name": self.name,
            "branch": branch,
            "branches": branches,
            "tags": self.state.tags(),
            "head": branches.get(branch),
            "waiting": self._waiting(branch) if branch in branches else [],
            "commits": [
                {**past.entry(self.state, commit, names), **_spoken(commit)}
                for commit in itertools.islice(commits, COMMITS)
            ],
        }

    def _commit(self, query: Query) -> Any:
        commit = self._at(query).commit
        return {
            **past.summary(commit),
            **past.changed(self.state, commit),
            "steps": [{**step, "turn": event.turn} for event in commit.events for step in steps(event)],
        }

    def _variables(self, query: Query) -> Any:
        snapshot = self._at(query)
        return [_line(snapshot, name) for name in snapshot]

    def _variable(self, query: Query) -> Any:
        snapshot, name = self._at(query), _given(query, "name")
        try:
            size = snapshot.size(name)
        except KeyError:
            raise NotHere(f"There is no variable {name!r} at this commit.") from None
        if size > LARGEST:
            raise Refused(f"{name!r} takes {size:,} bytes, which is too much for a page.")
        try:
            return look(_read(snapshot, name))
        except UnpicklableVariableError as error:
            return {"kind": "lost", "type": "", "text": str(error)}

    def _files(self, query: Query) -> Any:
        return [
            {"path": path, "size": entry.size, "modified": entry.modified}
            for path, entry in sorted(self._at(query).files.entries.items())
            if not path.endswith("/")
        ]

    def _file(self, query: Query) -> Any:
        path, content = self._content(query)
        return file_look(path, content)

    def _bytes(self, query: Query) -> Any:
        return {"data": base64.b64encode(self._content(query)[1]).decode()}

    def _content(self, query: Query) -> tuple[str, bytes]:
        files, path = self._at(query).files, _given(query, "path")
        if path not in files:
            raise NotHere(f"There is no file {path!r} at this commit.")
        if files.entries[path.lstrip("/")].size > LARGEST:
            raise Refused(f"{path!r} is too large for a page.")
        return path, files[path]

    def _diff(self, query: Query) -> Any:
        return past.compare(self.state, query.get("old") or None, _given(query, "new"))

    def _search(self, query: Query) -> Any:
        """Find words in what was said, done and kept, in any case; the newest commit comes first."""
        words = _given(query, "words").casefold()
        branch = query.get("branch") or self.state.branch
        head = self.state.branches().get(branch)
        commits = itertools.islice(self.state.history(head), COMMITS) if head else iter(())
        return list(itertools.islice(self._hits(commits, words), HITS))

    def _hits(self, commits: Iterable[Commit], words: str) -> Iterator[dict[str, Any]]:
        for commit in commits:
            for kind, text in self._texts(commit):
                at = text.casefold().find(words)
                if at >= 0:
                    start = max(at - AROUND, 0)
                    excerpt = " ".join(text[start : at + len(words) + AROUND].split())
                    before, after = "... " * (start > 0), " ..." * (at + len(words) + AROUND < len(text))
                    yield {"hash": commit.hash, "kind": kind, "text": f"{before}{excerpt}{after}"}

    def _texts(self, commit: Commit) -> Iterator[tuple[str, str]]:
        """Yield what a commit can be found by, each with what it is."""
        yield "message", commit.message or ""
        for event in commit.events:
            for step in steps(event):
                words = [step[key] for key in ("path", "text", "old") if step.get(key)]
                yield step["kind"], "\n".join([*words, *step.get("inputs", {}).values()])
        changed = past.changed(self.state, commit)
        for kind, names in (("variable", changed["changed"]), ("file", changed["files"])):
            for name in itertools.chain.from_iterable(names.values()):
                yield kind, name

    def _fork(self, query: Query) -> Any:
        name, at = query.get("name", "").strip(), _given(query, "at")
        if len(name) > NAME_CHARS or not name.isprintable():
            raise Refused(f"A branch's name has at most {NAME_CHARS} characters, all of them visible.")
        return past.fork(self.state, name or None, at)

    def _waiting(self, branch: str) -> list[dict[str, Any]]:
        return [asdict(run) for run in waiting_runs(self._on(branch))]

    def _decide(self, query: Query) -> Any:
        """Write a person's word about what waits; the run goes on when its task is resumed."""
        word = _given(query, "word")
        if word not in ("approve", "reject", "answer"):
            raise Refused("A call is approved or rejected, a question answered: the 'word' is neither.")
        state, run = self._on(_given(query, "branch")), _given(query, "run")
        what, text = _given(query, "call"), query.get("reason", "")
        if word == "answer":
            answer(state, run, what, text)
        else:
            decide(state, run, what, rejected=text if word == "reject" else None)
        return {"head": state.head}

    def _on(self, branch: str) -> Versioned:
        """Return a branch as it is now, with what other processes wrote."""
        return Versioned(self.state.store, branch=branch)

    def _at(self, query: Query) -> Snapshot:
        ref = _given(query, "ref")
        try:
            return self.state.checkout(ref)
        except StateError as error:
            raise NotHere(str(error)) from error


def _given(query: Query, name: str) -> str:
    if not query.get(name):
        raise Refused(f"The question has no {name!r}.")
    return query[name]


def _read(snapshot: Snapshot, name: str) -> Any:
    """Read a variable, with the source of functions; one that only a worker can make is sketched."""
    try:
        return snapshot[name]
    except UnpicklableVariableError:
        return snapshot.sketch(name)


def _line(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Describe a variable in a line; what cannot be shown says why."""
    size = snapshot.size(name)
    shown = {"name": name, "size": size}
    if size > LARGE:
        return {**shown, "kind": "large", "type": "", "text": ""}
    try:
        seen = look(_read(snapshot, name))
    except UnpicklableVariableError as error:
        return {**shown, "kind": "lost", "type": "", "text": str(error).partition("\n")[0]}
    except AgexError as error:  # of a class that only the agent's own program knows
        return {**shown, "kind": "lost", "type": "", "text": str(error)}
    return {**shown, "kind": seen["kind"], "type": seen["type"], "text": seen["text"][:LINE_CHARS]}


def _spoken(commit: Commit) -> dict[str, Any]:
    """Return the part of a commit that is a conversation: whose run it is, what was said, what it cost."""
    events = commit.events
    said = []
    for event in events:
        ended = isinstance(event, ErrorEvent) and not event.recoverable
        if ended or isinstance(event, _SPOKEN):
            said += steps(event)
        elif isinstance(event, SystemNoteEvent):
            said += [step for step in steps(event) if step["kind"] == "answer"]
    short = [{key: value for key, value in step.items() if key != "look"} for step in said]
    return {
        "run": next((event.run_id for event in events), None),
        "agent": next((event.agent for event in events), None),
        "said": short,
        **_spent(event for event in events if isinstance(event, ActionEvent)),
    }


def _spent(answers: Iterable[ActionEvent]) -> dict[str, Any]:
    """Return which models answered, for how many dollars, and how long they took."""
    usage, models, seconds = Usage(), set[str](), 0.0
    for each in answers:
        usage += each.usage
        models.add(each.model)
        seconds += each.seconds
    return {"models": sorted(models - {""}), "cost": usage.cost, "seconds": round(seconds, 2)}
