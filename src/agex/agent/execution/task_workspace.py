"""The workspace of one task call: its files, the actions on them, and what they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

from agex import escaping as printable
from agex._interpreter import syntax_trees
from agex.agent.loop.loop import Observation
from agex.agent.rendering.output_text import cut_middle, encodable, last_lines
from agex.errors import SandboxError
from agex.files import FileTree, MountedFiles, WatchedFiles, Workspace
from agex.files.recap import recap
from agex.files.text_edit import PassageError, replaced
from agex.models.actions import EditFileAction, WriteFileAction

if TYPE_CHECKING:
    from agex.files.changes import Changes
    from agex.files.skill import Skill
    from agex.isolation import GuestSession
    from agex.isolation.worker.host_session import RemoteSession
    from agex.sandbox import Result, Session
    from agex.shell import TerminalCommand, Transcript
    from agex.state import State

__all__ = ["RECAP_TOKENS", "TaskFiles", "workspace_of"]

RECAP_TOKENS = 800
"""Of the prompt, for what is in the workspace."""
_CHARS_PER_TOKEN = 3.5
_SILENT = "(The commands ran without an error and printed nothing.)"


def workspace_of(own: Workspace | None, state: State | None) -> Workspace | None:
    """Return the files of a task: those of its state, of its directory, or its own for this one call."""
    if own is None:
        return None
    return own.fresh() if state is None else own.over(state.files)


class TaskFiles:
    """The files of one task call, as its actions have them.

    Args:
        workspace: the files.
        skills: what is mounted into it.
        commands: of its terminal, beside the usual ones.
    """

    def __init__(
        self, workspace: Workspace, *, skills: Iterable[Skill] = (), commands: Iterable[TerminalCommand] = ()
    ) -> None:
        mounts = {f"/skills/{skill.name}": skill.files for skill in skills}
        tree: FileTree = MountedFiles(workspace.files, mounts) if mounts else workspace.files
        self._watched = WatchedFiles(tree)
        self.workspace = Workspace(self._watched)
        """The files as the session gets them."""
        self._commands = tuple(commands)
        self._terminal: Callable[[str], Transcript] | None = None
        self.in_terminal = False
        """Whether a terminal action runs, from which the task cannot be ended."""

    def attach(self, session: GuestSession) -> None:
        """Let the terminal work in a session, which has these files."""
        self._session = session

    # -- actions ---------------------------------------------------------------------------------

    def observed(self, action: WriteFileAction | EditFileAction) -> Observation:
        """Carry out an action on a file; it does all or nothing."""
        try:
            text = self.write(action) if isinstance(action, WriteFileAction) else self.edit(action)
        except (OSError, ValueError) as error:
            text = f"{action.path}: {error}" if isinstance(error, PassageError) else str(error)
            text = printable.hanging(text)
            return Observation(text=text, failed=True, brief=text)
        return Observation(text=printable.line(text))

    def write(self, action: WriteFileAction) -> str:
        """Write a file, whole; return what to say of it.

        Raises:
            OSError: it cannot be written.
        """
        files = self._watched
        was = "Replaced" if files.isfile(action.path) else "Wrote"
        files.write(action.path, action.content.encode())
        return f"{was} {action.path} ({_count(action.content)}).{_syntax(action.path, action.content)}"

    def edit(self, action: EditFileAction) -> str:
        """Replace a passage of a file; return what to say of it.

        Raises:
            OSError: there is no such file.
            PassageError: the passage is not there, or more than once. Nothing was changed.
        """
        files = self._watched
        try:
            text = files.read(action.path).decode()
        except UnicodeDecodeError:
            raise PassageError(f"{action.path} is no text; write it from Python.") from None
        new = replaced(text, action.search, action.replace)
        files.write(action.path, new.encode())
        return f"Edited {action.path} ({_count(new)}).{_syntax(action.path, new)}"

    def run_terminal(self, script: str) -> Result:
        """Run shell commands where guest code runs, under the limits of the session.

        The value of the result is a `Transcript`.
        """
        from agex.sandbox import Session

        session = self._session
        self.in_terminal = True
        try:
            if not isinstance(session, Session):
                elsewhere = cast("RemoteSession", session)
                return elsewhere.run_script(script, {one.name: one for one in self._commands})
            if self._terminal is None:
                self._terminal = self._new_terminal(session)
            return session.call(self._terminal, script)
        finally:
            self.in_terminal = False

    def shown(self, result: Result, limit: int) -> Observation:
        """Return the observation of a terminal action."""
        if result.error is not None:
            text = "\n".join(last_lines(result.traceback, 1))
            return Observation(text=text, failed=True, brief=text, seconds=result.duration)
        transcript: Transcript = result.value
        text = encodable(cut_middle(transcript.text.rstrip("\n"), limit)) or _SILENT
        brief = "\n".join(map(printable.line, text.split("\n")[-3:])) if transcript.failed else ""
        return Observation(text=text, failed=transcript.failed, brief=brief, seconds=result.duration)

    def _new_terminal(self, session: Session) -> Callable[[str], Transcript]:
        from agex.shell import guest_terminal

        return guest_terminal(
            session, {one.name: partial(one.run, host=session.paused) for one in self._commands}
        ).run

    def require_not_in_terminal(self, name: str) -> None:
        """Refuse to end the task from the terminal.

        Raises:
            SandboxError: with what to do instead.
        """
        if self.in_terminal:
            raise SandboxError(f"{name}() ends the task from a python_action, not from the terminal")

    def has_module(self, name: str) -> bool:
        """Return whether the outermost package of a module is a file or folder here."""
        top = name.partition(".")[0]
        return self._watched.isfile(f"/{top}.py") or self._watched.isdir(f"/{top}")

    # -- what the model is told --------------------------------------------------------------------

    def take_changes(self) -> Changes:
        """Return the changes since the last call of this method."""
        return self._watched.take_changes()

    def recap(self) -> str:
        """Describe what is there, within bounds; empty for an empty workspace."""
        return recap(self._watched, int(RECAP_TOKENS * _CHARS_PER_TOKEN))


def _count(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return f"{lines} line{'' if lines == 1 else 's'}, {len(text.encode())} bytes"


def _syntax(path: str, text: str) -> str:
    """Return a note on the syntax error of a module; empty for none."""
    if not path.endswith(".py"):
        return ""
    try:
        syntax_trees.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the last two: nested too deep
        line = getattr(error, "lineno", None)
        return f" It has a syntax error{f' in line {line}' if line else ''}: {getattr(error, 'msg', error)}."
    return ""
