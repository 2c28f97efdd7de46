"""Server in a worker: one session of guest code, under the commands of the host.

The host believes nothing that it says: checks here only help guest code.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, cast

from agex import values
from agex.isolation.executor import Level, Python
from agex.isolation.rpc.command_rpc import asking, told_transcript
from agex.isolation.rpc.declarations import declared, told
from agex.isolation.rpc.file_rpc import HostFiles
from agex.isolation.rpc.guest_codecs import InboundCode, OutboundCode, StoredCode
from agex.isolation.rpc.host_proxies import InputsRecord, Stubs
from agex.isolation.wire.codec import CannotCross, Packing, pack, pack_groups, unpack, unpack_groups
from agex.isolation.wire.error_codec import WorkerGone, pack_error, unpack_error
from agex.isolation.wire.framing import Channel, Frame
from agex.isolation.wire.worker_channel import WorkerChannel
from agex.isolation.worker.full_code import FullCode
from agex.isolation.worker.full_python import FullSession
from agex.isolation.worker.process_refusals import name_level
from agex.isolation.worker.sealed_objects import SealedInboundCode, SealedStoredCode
from agex.isolation.workspace.report import Reporter
from agex.isolation.workspace.requests import apply_changes
from agex.isolation.workspace.walk import WalkBounds
from agex.sandbox import KeptCode, Limits, Policy, Result, Sandbox, Session
from agex.sandbox.runtime import audit_hook as wall
from agex.sandbox.runtime.output import CAPTURE, Output
from agex.shell import Terminal, guest_terminal

__all__ = ["Template", "WorkerServer"]

_FLUSH_SECONDS = 0.05
_FLUSH_CHARS = 4_096
_EAGER_LINES = 200


class _Ended(BaseException):
    """The host ended the run."""


@dataclass(frozen=True)
class Template:
    """Settings that workers of one policy share."""

    policy: Policy
    classes: tuple[type, ...]
    stubs: Stubs


class _Streamed(Output):
    """Output whose beginning is sent to the host as it is printed."""

    def __init__(self, limit: int, tell: Callable[[str], None]) -> None:
        super().__init__(limit)
        self._room = limit - limit // 2
        self._tell = tell
        self._waiting: list[str] = []
        self._size = 0
        self._told = 0
        self._flushes = 0
        self._last = time.monotonic()

    def write(self, text: str) -> int:
        size = super().write(text)
        if self._room > 0:
            piece = str.__str__(text)[: self._room]
            self._room -= len(piece)
            self._waiting.append(piece)
            self._size += len(piece)
            if self._is_due(piece):
                self._flush()
        return size

    def _is_due(self, piece: str) -> bool:
        """Return whether to send it now: the first lines at once, for a call into C may hang after them."""
        if self._flushes < _EAGER_LINES and piece.endswith("\n"):
            return True
        return self._size >= _FLUSH_CHARS or time.monotonic() - self._last >= _FLUSH_SECONDS

    def _flush(self) -> None:
        self._flushes += 1
        piece, self._waiting, self._size = "".join(self._waiting), [], 0
        self._told += len(piece)
        self._last = time.monotonic()
        self._tell(piece)

    def rest(self) -> str:
        """Return the output that was not sent yet."""
        return self.text()[self._told :]


class WorkerServer:
    """Server of one session.

    Args:
        channel: to the host.
        template: the policy and classes of its code.
        limits: of one run.
        has_files: whether it has a workspace, in the host.
        python: the interpreter of its code.
        level: of isolation.
    """

    def __init__(
        self,
        channel: Channel,
        template: Template,
        limits: Limits,
        *,
        has_files: bool = False,
        python: Python = "guarded",
        level: Level = "process",
    ) -> None:
        self._link = WorkerChannel(channel, self._serve)
        self._requests: Mapping[str, Callable[[Frame], None]] = {
            "put": self._put,
            "files": self._files,
            "report": self._report_files,
            "run": self._run,
            "script": self._script,
            "call": self._call,
            "get": self._get,
            "declare": self._declare,
            "sync": self._sync,
            "keep": self._keep,
        }
        self._outputs: list[_Streamed] = []
        files = HostFiles(self.ask) if has_files else None
        self._session: Session | FullSession
        code: values.GuestCode
        if python == "full":
            self._session = full = FullSession(template.policy, limits, self._output, files)
            code = FullCode(full)
            os.register_at_fork(after_in_child=self._link.close)
            if level == "kernel":
                name_level(level)
        else:
            self._session = guarded = Session(template.policy, limits, {}, files=files, output=self._output)
            guarded.has_host_elsewhere = True
            code = KeptCode(Sandbox(template.policy, limits=limits), guarded)
        self._given = OutboundCode(code, template.stubs)
        self._taken = InboundCode(code, template.stubs, self._given)
        self._code = StoredCode(code, self._session.builtins)
        if isinstance(self._session, FullSession):
            in_time = self._session.in_time
            self._taken = SealedInboundCode(code, template.stubs, self._given, in_time)
            self._code = SealedStoredCode(code, self._session.builtins, in_time)
        self._allow = values.Allow(template.classes)
        self._inputs: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}
        self._sent: dict[str, values.Fingerprint] = {}  # by variable, that of the group it was sent in
        self._looks = values.Looks()
        self._terminal: Terminal | None = None
        self._reporter: Reporter | None = None
        self._is_given = False
        """Whether variables are being decoded: guest code that runs meanwhile may not ask the host."""

    def run(self) -> None:
        """Serve the host until it hangs up."""
        signal.signal(signal.SIGUSR1, lambda *_: self._session.interrupt(_Ended()))
        with contextlib.suppress(WorkerGone):
            while True:
                self._serve(self._link.receive())

    # -- asking ----------------------------------------------------------------------

    def ask(self, what: str, of: int | str, name: str | None, args: Any, kwargs: Any) -> Any:
        """Ask the host to work for guest code, on the host's time."""
        session, is_file = self._session, what == "file"
        if not is_file:
            self._require_run()
        with session.paused():
            asked = self._pack((tuple(args), dict(kwargs)), "an argument")
            header = {"k": "ask", "what": what, "of": of, "name": name, "v": asked.header}
            reply = self._link.ask(header, asked.parts, None if is_file else self._require_run)
            session.charge(float(reply.header["seconds"]))
            error = reply.header.get("error")
            value = None if error or reply.header.get("stop") else self._unpack(reply, reply.parts)
        if printed := reply.header.get("out"):
            self._print(printed)
        if reply.header.get("stop"):
            session.stop(_Ended())
        if error:
            raise unpack_error(error, self._allow.registered)
        return value

    def _require_run(self) -> None:
        """Refuse a request that the host does not listen for.

        Raises:
            AttributeError: no code runs, or only a thread that an earlier run left.
        """
        if self._is_given or not self._session.is_running:
            raise AttributeError("host objects are used only while code runs, and none does")

    def _print(self, text: str) -> None:
        """Show what host code printed."""
        output = CAPTURE.get()
        if isinstance(self._session, FullSession):
            sys.stdout.write(text)
        elif output is not None:
            output.write(text)

    def _pack(self, value: Any, what: str) -> Packing:
        return pack(value, what, allow=self._allow, guest=self._given)

    def _unpack(self, frame: Frame, parts: Any) -> Any:
        return unpack(frame.header["v"], parts, allow=self._allow, guest=self._taken)

    # -- serving ---------------------------------------------------------------------

    def _serve(self, frame: Frame) -> None:
        self._requests[frame.kind](frame)

    def _put(self, frame: Frame) -> None:
        """Take variables and bound names."""
        self._is_given = True
        found: dict[str, Any] = {}
        for group in unpack_groups(frame.header["g"], frame.parts):
            own = replace(group, origin="")  # it came from a worker of this level, or from the host
            found.update(values.decode(own, allow=self._allow, guest=self._taken))
        bound = set(frame.header["bound"])
        self._session.add({name: value for name, value in found.items() if name not in bound})
        for name in bound & found.keys():
            self._session.bind(name, found[name])
        for name in frame.header["kept"]:
            self._kept[name] = found[name]
        for name, fields in frame.header["records"].items():
            record = {field: found[field] for field in fields}
            self._inputs.update(record)
            self._session.bind(name, InputsRecord(**record))
        self._session.import_again(frame.header["modules"])
        self._note(found)
        self._is_given = False
        self._link.hand_over({"k": "done"})

    def _files(self, frame: Frame) -> None:
        """Change files of the worker's own directory as the host did in the workspace."""
        failed = apply_changes(frame.header["ops"], frame.parts, frame.header["root"])
        if self._reporter is not None:
            self._reporter.forget(path for _, path, _ in frame.header["ops"])
        self._link.hand_over({"k": "done", "failed": failed})

    def _report_files(self, frame: Frame) -> None:
        """Report what is in the worker's own directory, where the host does not see it."""
        if self._reporter is None:
            self._reporter = Reporter(frame.header["root"])
        self._link.hand_over({"k": "done"}, self._reporter.report(WalkBounds(**frame.header["bounds"])))

    def _run(self, frame: Frame) -> None:
        source, filename = (bytes(part).decode("utf-8", "surrogatepass") for part in frame.parts)
        echo, awaits = bool(frame.header["echo"]), bool(frame.header["await"])
        session, mark = self._session, len(self._outputs)
        if isinstance(session, FullSession):
            self._finish(session.run(source, filename, echo=echo, awaits=awaits), mark)
        elif awaits:
            self._finish(asyncio.run(session.arun(source, filename, echo=echo)), mark)
        else:
            self._finish(session.run(source, filename, echo=echo), mark)

    def _script(self, frame: Frame) -> None:
        """Run shell commands: the shell runs here, and asks the host for host commands."""
        if self._terminal is None:
            commands = {name: asking(name, self.ask, self._folder()) for name in frame.header["commands"]}
            self._terminal = guest_terminal(self._session, commands)
        mark = len(self._outputs)
        result = self._session.call(
            self._terminal.run, bytes(frame.parts[0]).decode("utf-8", "surrogatepass")
        )
        result.value = told_transcript(result.value)
        self._finish(result, mark, with_value=True)

    def _folder(self) -> Callable[[], str] | None:
        """Return what tells the current folder of the terminal; None where the host knows it."""
        session = self._session
        if not isinstance(session, FullSession) or not session.has_directory:
            return None
        return lambda: str(session.guest_files.getcwd())

    def _call(self, frame: Frame) -> None:
        args, kwargs = self._unpack(frame, frame.parts)
        function, mark = self._given.function(frame.header["id"]), len(self._outputs)
        session, awaits = self._session, bool(frame.header["await"])
        if isinstance(session, FullSession):
            work = functools.partial(function, *args, **kwargs)
            result = session.call_awaiting(work) if awaits else session.call(work)
        elif awaits:
            result = asyncio.run(session.acall(function, *args, **kwargs))
        else:
            result = session.call(function, *args, **kwargs)
        self._finish(result, mark, with_value=True)

    def _finish(self, result: Result, mark: int, *, with_value: bool = False) -> None:
        """Send the host the outcome of a run.

        Args:
            result: of the run.
            mark: the number of runs around it, by their outputs.
            with_value: send the value too.
        """
        value = Packing(0)
        if with_value and result.error is None and result.stopped is None:
            try:
                value = self._pack(result.value, "the result")
            except CannotCross as error:
                result.error, result.traceback = error, f"TypeError: {error}"
        texts = [self._outputs[mark].rest(), result.echo or "", result.traceback]
        del self._outputs[mark:]  # code that was made again meanwhile printed to its own
        header = {
            "k": "done",
            "error": None if result.error is None else pack_error(result.error, _said(result)),
            "echo": result.echo is not None,
            "stopped": result.stopped is not None,
            "defined": sorted(self._session.defined),
            "seconds": result.duration,
            "time": result.enforcement.time,
            "v": value.header,
        }
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        result.error = result.stopped = result.value = (
            None  # open files in them are closed while the host listens
        )
        self._link.hand_over(header, [*encoded, *value.parts])

    def _output(self, limit: int) -> Output:
        self._outputs.append(_Streamed(limit, self._tell))
        return self._outputs[-1]

    def _tell(self, text: str) -> None:
        # The audit hook lets no guest code use a socket, and this one belongs to the worker.
        wall.call_as_host(self._link.send, {"k": "out"}, [text.encode("utf-8", "surrogatepass")])

    # -- variables -------------------------------------------------------------------

    def _get(self, frame: Frame) -> None:
        """Send the host one variable as a value."""
        value = self._session.look_up(frame.header["name"])
        try:
            packed = self._pack(value, frame.header["name"])
        except CannotCross as error:
            self._link.hand_over({"k": "done", "error": pack_error(error, str(error))})
        else:
            self._link.hand_over({"k": "done", "v": packed.header}, packed.parts)

    def _declare(self, frame: Frame) -> None:
        """Send the declaration of a function; None for one that guest code did not write."""
        function: Any = self._given.function(frame.header["id"])
        session = self._session
        is_own = session.is_guest_function(function)
        self._link.hand_over(
            {"k": "done", "d": told(declared(function), cast("Session", session)) if is_own else None}
        )

    def _sync(self, frame: Frame) -> None:
        """Send the variables that changed since they were sent, and the names of all."""
        variables = self._variables()
        for name in self._sent.keys() - variables.keys():
            del self._sent[name]  # the host forgets it, too
        groups = list(self._changed(variables))
        packed = pack_groups(groups)
        modules = self._session.modules
        names = [name for name in self._session.namespace if name not in modules]
        header = {"k": "done", "g": packed.header, "names": names, "modules": modules}
        self._link.hand_over(header, packed.parts)

    def _variables(self) -> dict[str, Any]:
        """Return the variables that a state keeps: inputs only once their names are bound anew."""
        modules = self._session.modules
        found = {
            name: value
            for name, value in self._session.namespace.items()
            if name not in self._kept and name not in modules
            if name not in self._inputs or self._inputs[name] is not value
        }
        return {**found, **self._kept}

    def _note(self, found: Mapping[str, Any]) -> None:
        """Note the fingerprints of variables that the host has."""
        variables = self._variables()
        for _ in self._changed({name: variables[name] for name in variables.keys() & found.keys()}):
            pass

    def _changed(self, variables: Mapping[str, Any]) -> Iterator[values.Group]:
        sent = {name: self._sent.get(name) for name in variables}
        known = {name: one if one is not None and len(one.names) == 1 else None for name, one in sent.items()}
        for group in self._looks.look(variables, known, self._encode).groups:
            now = values.fingerprint(group)
            if any(sent[name] != now for name in group.names):
                for name in {each for name in group.names if (one := sent[name]) for each in one.names}:
                    self._sent.pop(name, None)
                self._sent.update(dict.fromkeys(group.names, now))
                yield group

    def _encode(self, variables: Mapping[str, Any], apart: AbstractSet[int]) -> list[values.Group]:
        if not variables:
            return []
        return values.encode(variables, allow=self._allow, guest=self._code, apart=apart)

    def _keep(self, frame: Frame) -> None:
        """Send guest functions as source and captured values: they outlive this worker."""
        functions = {f"f{number}": self._given.function(number) for number in frame.header["ids"]}
        packed = pack_groups(
            values.encode(functions, allow=self._allow, guest=self._code) if functions else []
        )
        self._link.hand_over({"k": "done", "g": packed.header}, packed.parts)


def _said(result: Result) -> str:
    """Return the message of an error, from the text of it that was made under limits."""
    args = vars(BaseException)["args"].__get__(result.error)
    if len(args) == 1 and type(args[0]) is str:
        return str(args[0])
    lines = result.traceback.strip().splitlines()
    name, _, text = (lines[-1] if lines else "").partition(": ")
    return text or name
