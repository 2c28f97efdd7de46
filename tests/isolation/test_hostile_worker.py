"""A worker that speaks the protocol to do harm: the host says what is wrong, kills it, and goes on.

Stopped by: isolation.wire, isolation.rpc, isolation.worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import struct
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agex import values
from agex.errors import EvalError
from agex.files import connect_fs
from agex.isolation.rpc.task_environment import TaskEnvironment
from agex.isolation.wire.error_codec import ProtocolError, WorkerGone
from agex.isolation.wire.framing import Channel, SocketStream
from agex.isolation.worker.host_session import RemoteSession
from agex.sandbox import Limits, Policy

DONE = {
    "k": "done",
    "error": None,
    "echo": True,
    "stopped": False,
    "defined": [],
    "seconds": 0,
    "time": "signal",
    "v": 0,
}


class Puppet:
    """A worker that does what a test says when it is told to run, and is well-behaved before."""

    def __init__(self, act) -> None:
        ours, self.theirs = socket.socketpair()
        self.channel = Channel(SocketStream(ours))
        self.peer = Channel(SocketStream(self.theirs.dup()))
        self.directory = None
        self.killed = False
        self._act = act
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(WorkerGone, OSError, ProtocolError):
            while True:
                frame = self.peer.receive()
                if frame.kind == "put":
                    self.peer.send({"k": "done"})
                else:
                    self._act(self, frame)

    def ask(self, header, *parts):
        """Ask the host, and give its reply."""
        self.peer.send({"k": "ask", **header}, parts)
        return self.peer.receive()

    def interrupt(self) -> None:
        """It would be told to stop."""

    def has_ended(self) -> bool:
        return self.killed

    def kill(self) -> str:
        self.close()
        return "killed"

    def close(self) -> None:
        self.killed = True
        self.theirs.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.channel.close()
        self.peer.close()
        self.theirs.close()


class Secret:
    """An object of the host that a worker is not given."""


def well(puppet: Puppet, frame) -> None:
    puppet.peer.send({**DONE}, [b"", b"fine", b""])


def session_with(
    *acts, policy: Policy | None = None, seconds: float = 1.5, files=None, granted=("lookup",), classes=()
):
    """Open a session whose workers act so, one after the other."""
    policy = policy or Policy.default()
    left = list(acts)
    made: list[Puppet] = []

    def start(about) -> Puppet:
        made.append(Puppet(left.pop(0) if left else well))
        return made[-1]

    place = TaskEnvironment(
        level="process",
        policy=policy,
        limits=Limits(seconds=seconds),
        classes=classes,
        granted={name: policy.names[name] for name in granted if name in policy.names},
        start=start,
        files=files,
    )
    return RemoteSession(place, {}), made


def refused(act, *, policy: Policy | None = None) -> str:
    """Run with a worker that acts so; check that it was killed and the next one works; give the error."""
    session, made = session_with(act, policy=policy)
    started = time.monotonic()
    result = session.run("x")
    took = time.monotonic() - started
    assert type(result.error) is EvalError
    assert took < 5
    assert made[0].killed
    assert session.run("x").echo == "fine"
    session.close()
    return str(result.error)


def stream(value) -> bytes:
    (group,) = values.encode({"value": value}, allow=values.Allow())
    return group.stream


def sends(header, *parts):
    def act(puppet, frame):
        puppet.peer.send(header, parts)

    return act


def sends_bytes(data: bytes):
    def act(puppet, frame):
        puppet.theirs.sendall(data)

    return act


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (sends_bytes(b"\x00" * 64), "sent what no worker sends"),
        (sends_bytes(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 64), "sent what no worker sends"),
        (sends_bytes(struct.pack("<IHHQ", 2, 1, 1, 1 << 62)), "the size of a message"),
        (sends_bytes(struct.pack("<IHHQ", 2, 1, 1, 1 << 30)), "did not stop"),
        (sends({"k": "ready"}), "'ready' came out of turn"),
        (sends({"k": "put"}), "'put' came out of turn"),
        (sends({"k": ["done"]}), "came out of turn"),
        (sends({}), "'None' came out of turn"),
        (sends({"k": "done"}), "lacks its texts"),
        (sends({**DONE, "stopped": True}, b"", b"", b""), "nobody stopped it"),
        (sends({**DONE, "error": 5}, b"", b"", b""), "an error is described"),
        (sends({**DONE, "error": {"mro": []}}, b"", b"", b""), "an error is described"),
        (sends({**DONE, "v": 3}, b"", b"", b""), "does not have the parts"),
        (sends({**DONE, "v": "1"}, b"", b"", b"", b"x"), "does not have the parts"),
        (sends({**DONE, "v": 1}, b"", b"", b"", b"garbage"), "sent what no worker sends"),
        (sends({**DONE, "v": 1}, b"", b"", b"", b""), "sent what no worker sends"),
        (sends({"k": "ask", "what": "call", "of": "lookup", "v": 1}, stream(((), {}))), "which it was not given"),
        (sends({"k": "ask", "what": "call", "of": 0, "v": 1}, stream(((), {}))), "which it was not given"),
        (sends({"k": "ask", "what": "call", "of": -1, "v": 1}, stream(((), {}))), "which it was not given"),
        (sends({"k": "ask", "what": "call", "of": "exec", "v": 1}, stream((("1",), {}))), "which it was not given"),
        (sends({"k": "ask", "what": "call", "of": {"a": 1}, "v": 1}, stream(((), {}))), "which it was not given"),
        (lambda puppet, frame: puppet.theirs.shutdown(socket.SHUT_RDWR), "ended: killed"),
        (lambda puppet, frame: None, "did not stop"),
    ],
)  # fmt: skip
def test_what_no_worker_sends_ends_it(act, message):
    assert message in refused(act)


def test_a_pickle_that_calls_something_calls_nothing(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    for data in (pickle.dumps(Evil()), pickle.dumps(Evil(), 0), pickle.dumps([Evil()], 5)):
        assert "sent what no worker sends" in refused(sends({**DONE, "v": 1}, b"", b"", b"", data))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "asked",
    [
        {"what": "method", "name": "__reduce__"},
        {"what": "method", "name": "_private"},
        {"what": "get", "name": "__class__"},
        {"what": "get", "name": "__globals__"},
        {"what": "operator", "name": "__class__"},
        {"what": "operator", "name": "__reduce_ex__"},
        {"what": "get", "name": 5},
        {"what": "eval", "name": "x"},
        {"what": None},
    ],
)
def test_nothing_is_reached_through_a_function_that_the_guards_would_refuse(asked):
    def lookup(x=None):
        return "called"

    policy = Policy.default()
    policy.fn(lookup)
    replies = []

    def act(puppet, frame):
        replies.append(puppet.ask({"of": "lookup", "v": 1, **asked}, stream(((), {}))).header)
        well(puppet, frame)

    session, made = session_with(act, policy=policy)
    result = session.run("x")
    assert made[0].killed or "error" in replies[0]
    assert made[0].killed == (result.error is not None)
    session.close()


def test_a_worker_may_ask_only_while_it_runs_something():
    session, _ = session_with(sends({"k": "ask", "what": "call", "of": "lookup", "v": 1}, stream(((), {}))))
    session.open()
    found = session.look_up  # a chore, not a run
    with pytest.raises(EvalError, match="out of turn"):
        found("x")
    session.close()


def test_a_worker_that_drips_forever_is_killed_in_time():
    def act(puppet, frame):
        data = struct.pack("<IHHQ", 1000, 0, 1, 0) + b" " * 900
        with contextlib.suppress(OSError):
            for at in range(len(data)):
                puppet.theirs.sendall(data[at : at + 1])
                threading.Event().wait(0.01)

    assert "did not stop" in refused(act)


def test_a_worker_that_prints_forever_is_bounded_and_killed():
    def act(puppet, frame):
        with contextlib.suppress(WorkerGone, OSError):
            while True:
                puppet.peer.send({"k": "out"}, [b"x" * 100_000])

    session, _ = session_with(act)
    result = session.run("x")
    assert len(result.stdout) < 100_000
    assert "did not stop" in str(result.error)
    session.close()


def test_output_after_its_time_is_not_waited_for():
    def act(puppet, frame):
        with contextlib.suppress(WorkerGone, OSError):
            while True:
                puppet.peer.send({"k": "out"}, [b"x"])

    started = time.monotonic()
    session, _ = session_with(act, seconds=0.2)
    session.run("x")
    assert time.monotonic() - started < 5
    session.close()


@pytest.mark.parametrize(
    "reply",
    [
        {"k": "done", "g": 5, "names": []},
        {"k": "done", "g": [5], "names": []},
        {"k": "done", "g": [[["a"], 2, False, "", {}]], "names": ["a"]},
        {"k": "done", "g": [[["a b"], 1, False, "", {}]], "names": ["a"]},
        {"k": "done", "g": [[["a", "a"], 1, False, "", {}]], "names": ["a"]},
        {"k": "done", "g": [[["a"], 1, False, "", {"a": [[1]]}]], "names": ["a"]},
    ],
)
def test_variables_that_are_described_wrongly_are_not_taken(reply):
    def act(puppet, frame):
        if frame.kind == "sync":
            puppet.peer.send(reply, [b"x"])
        else:
            well(puppet, frame)

    session, made = session_with(act)
    session.run("x")
    with pytest.raises(EvalError, match="sent what no worker sends"):
        dict(session.namespace)
    assert made[0].killed
    session.close()


def test_variables_are_not_looked_into_and_their_origin_is_not_the_workers_to_say():
    def act(puppet, frame):
        if frame.kind == "sync":
            puppet.peer.send(
                {"k": "done", "g": [[["a"], 1, False, "", {}]], "names": ["a", "__x__", 5]}, [b"garbage"]
            )
        else:
            well(puppet, frame)

    session, _ = session_with(act)
    session.run("x")
    found = session.namespace["a"]
    assert (found.group.stream, found.group.origin) == (b"garbage", "process")
    session.close()


def test_a_value_whose_hash_never_ends_does_not_hang_the_host():
    body = b"\x80\x05)\x94"  # an empty tuple, then pairs of itself with itself, by the memo
    for at in range(60):
        body += b"h" + bytes([at]) + b"h" + bytes([at]) + b"\x86\x94"
    evil = body + b"}\x94h" + bytes([60]) + b"Ns)\x86."
    assert "sent what no worker sends" in refused(sends({**DONE, "v": 1}, b"", b"", b"", evil))


def written(value) -> bytes:
    """Write a value as a worker may: a text that begins with an @ is a constructor for arrays, called."""
    if type(value) is tuple and value and type(value[0]) is str and value[0].startswith("@"):
        names = ("agex.values.adapters.numpy_arrays", value[0][1:])
        call = b"".join(b"\x8c" + bytes([len(name)]) + name.encode() for name in names) + b"\x93"
        return call + written(value[1:]) + b"R"
    if type(value) is tuple:
        return b"(" + b"".join(map(written, value)) + b"t"
    return pickle.dumps(value, 5)[2:-1].replace(b"\x94", b"")


SLOW = {
    "a seed that is mixed for seconds": ("@make_generator", "PCG64", 0, (1, (), 40_000, 0)),
    "a long number as a seed": ("@make_generator", "PCG64", 0, (1 << 4_000_000, (), 4, 0)),
    "objects in 2 GB": ("@make_object_array", "|O", (1 << 28,), False, bytearray(1)),
    "objects in 2 GB, as they were once written": ("@make_object_array", "|O", (1 << 28,)),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_few_bytes_of_arrays_do_not_hold_the_host(name):
    evil = b"\x80\x05" + written(SLOW[name]) + b"\x85)\x86."
    started = time.monotonic()
    assert "sent what no worker sends" in refused(sends({**DONE, "v": 1}, b"", b"", b"", evil))
    assert time.monotonic() - started < 2


def named(text: str) -> bytes:
    return b"\x8c" + bytes([len(text)]) + text.encode()


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("construct", named("/etc/x") + b"\x85\x89\x87R"),
        ("record", b")\x86R(K\x01K\x02e"),
        ("record", b")\x86R(K\x01\x90"),
        ("record", b")\x86R\x8c\x01kK\x01s"),
    ],
)
def test_a_worker_runs_nothing_of_a_registered_class(method, rest):
    ran = []

    class Basket:
        def __init__(self, *args):
            ran.append(args)

        extend = add = __setitem__ = __init__

    constructor = named("agex.values.code.reconstructor") + named(f"Builder.{method}") + b"\x93"
    evil = constructor + named(f"{Basket.__module__}.{Basket.__qualname__}") + rest
    act = sends({**DONE, "v": 1}, b"", b"", b"", b"\x80\x05((" + evil + b"t)t.")
    session, made = session_with(act, classes=(Basket,))
    assert "sent what no worker sends" in str(session.run("x").error)
    assert made[0].killed
    session.close()
    assert ran == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
_HEADER = st.fixed_dictionaries(
    {"k": st.sampled_from(["done", "out", "ask", "reply", "ready", "fault"]) | _JSON},
    optional={
        "error": _JSON, "echo": _JSON, "stopped": _JSON, "defined": _JSON, "seconds": _JSON, "v": st.integers(0, 3) | _JSON,
        "what": st.sampled_from(["call", "get", "set", "delete", "method", "operator"]) | _JSON,
        "of": st.sampled_from(["lookup", 0, 1]) | _JSON, "name": st.sampled_from(["__call__", "x", "__len__"]) | _JSON,
        "g": _JSON, "names": _JSON,
    },
)  # fmt: skip
_PART = (
    st.binary(max_size=20)
    | st.just(stream(((), {})))
    | st.just(stream(((1,), {"x": 2})))
    | st.just(stream(5))
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_HEADER, st.lists(_PART, max_size=5)), min_size=1, max_size=4))
def test_any_messages_end_in_a_result(messages):
    def act(puppet, frame):
        if frame.kind == "run":
            for header, parts in messages:
                puppet.peer.send(header, parts)
            puppet.theirs.shutdown(socket.SHUT_WR)

    policy = Policy.default()
    policy.fn(lambda *args, **kwargs: "called", name="lookup")
    session, made = session_with(act, policy=policy)
    result = session.run("x")
    assert result.error is None or isinstance(result.error, Exception)
    session.close()
    assert json.dumps(result.stdout)
    assert made[0].killed


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_change_to_an_encoded_value_is_decoded_or_refused(data):
    good = stream([{"a": (1, 2.5, "x")}, {1, 2}, b"bytes", frozenset({3})])
    changed = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    group = values.Group(names=("value",), stream=bytes(changed), origin="process")
    with contextlib.suppress(Exception):
        values.decode(group, allow=values.Allow(), guest=None)


# -- files ---------------------------------------------------------------------------------------


def asks_files(name, args, kwargs=None):
    return sends({"k": "ask", "what": "file", "of": "", "name": name, "v": 1}, stream((args, kwargs or {})))


def refused_with_files(act, files=None):
    session, made = session_with(act, files=connect_fs() if files is None else files)
    result = session.run("x")
    assert made[0].killed
    assert session.run("x").echo == "fine"
    session.close()
    return str(result.error)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("__class__", ()),
        ("_files", ()),
        ("_do", ("read", "a")),
        ("open", ("a", "w")),
        ("files", ()),
        ("over", ({},)),
        ("read_many", (["a"],)),
        ("take_changes", ()),
        ("kinds", ()),
        (5, ()),
        (None, ()),
        ("read" * 100, ("a", 0, -1)),
    ],
)
def test_files_do_nothing_else_than_they_can(name, args):
    assert "cannot do" in refused_with_files(asks_files(name, args))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read", ("a",)),
        ("read", ("a", 0, -1, 5)),
        ("read", (b"a", 0, -1)),
        ("read", ("a", 0.5, -1)),
        ("read", (["a"], 0, -1)),
        ("read", (None, 0, -1)),
        ("write", ("a", "text", "w")),
        ("write", ("a", bytearray(b"x"), "w")),
        ("write", ("a", [b"x"], "w")),
        ("list", ("a", 1)),
        ("mkdir", ("a", None, None)),
        ("utime", ("a", (1.0,))),
        ("utime", ("a", (1, 2))),
        ("utime", ("a", [1.0, 2.0])),
        ("utime", ("a", (object, 2.0))),
        ("getcwd", ("a",)),
        ("truncate", ("a", True)),
    ],
)
def test_files_take_nothing_else_than_what_is_due(name, args):
    assert "something else than it takes" in refused_with_files(asks_files(name, args))


def test_arguments_by_name_and_what_is_no_call_are_refused():
    assert "by name" in refused_with_files(asks_files("read", ("a",), {"offset": 0}))
    for value in (5, (), ((),), [(), {}], ("ab", {}), ((), [])):
        act = sends({"k": "ask", "what": "file", "of": "", "name": "getcwd", "v": 1}, stream(value))
        assert "arguments of a call" in refused_with_files(act)


def test_files_that_were_not_given_are_not_asked_for():
    assert "it was given none" in refused(asks_files("getcwd", ()))


class Conversation:
    """A worker that asks the files for what a test wants, one thing after the other."""

    def __init__(self, *asked) -> None:
        self.asked = asked
        self.replies = []

    def __call__(self, puppet, frame):
        if frame.kind == "run":
            for name, args in self.asked:
                header = {"what": "file", "of": "", "name": name, "v": 1}
                self.replies.append(puppet.ask(header, stream((args, {}))))
        well(puppet, frame)

    @property
    def errors(self):
        return [reply.header.get("error", {}).get("mro", ["none"])[0] for reply in self.replies]

    @property
    def texts(self):
        return [reply.header.get("error", {}).get("text", "") for reply in self.replies]


def conversation(files, *asked):
    act = Conversation(*asked)
    session, made = session_with(act, files=files, seconds=5.0)
    assert session.run("x").error is None
    assert not made[0].killed
    session.close()
    return act


_OUT = ["../secret", "/../secret", "a/../../secret", "//..//secret", "../" * 50 + "etc/passwd", "link/secret"]


@pytest.mark.parametrize("path", _OUT)
def test_no_path_leads_out_of_a_directory(tmp_path, path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("the host's own")
    (root / "link").symlink_to(tmp_path)
    asked = [
        ("read", (path, 0, -1)),
        ("write", (path, b"x", "w")),
        ("remove", (path,)),
        ("rename", (path, "here")),
        ("symlink", (str(tmp_path / "secret"), "here")),
        ("link", (str(tmp_path / "secret"), "here")),
        ("read", ("here", 0, -1)),
    ]
    act = conversation(connect_fs(type="isolated", root=root), *asked)
    assert (tmp_path / "secret").read_text() == "the host's own"
    assert not any(b"the host's own" in bytes(part) for reply in act.replies for part in reply.parts)
    assert [path.name for path in tmp_path.iterdir()] in (["root", "secret"], ["secret", "root"])


def test_sizes_that_the_host_could_not_hold_are_refused():
    act = conversation(
        connect_fs(),
        ("write", ("a", b"x", "w")),
        ("truncate", ("a", 1 << 50)),
        ("read", ("a", 0, 1 << 62)),
        ("read", ("a" * 5000, 0, -1)),
        ("glob", ("*" * 5000,)),
        ("glob", ("**/" * 200 + "x",)),
        ("write", ("a", b"x", "nonsense")),
        ("require_room", ("a", 1 << 200)),
    )
    assert [error.rpartition(".")[2] for error in act.errors[:6]] == ["none", *["OSError"] * 5]
    assert "1,073,741,824 bytes" in act.texts[1]


def test_a_file_does_not_grow_beyond_what_the_host_could_hold(monkeypatch):
    monkeypatch.setattr("agex.isolation.rpc.file_rpc.MOST_BYTES", 10)
    files = connect_fs()
    act = conversation(files, *[("write", ("a", b"12345", "a"))] * 4, ("read", ("a", 0, -1)))
    assert [bool(text) for text in act.texts] == [False, False, True, True, False]
    assert files.read("a") == b"1234512345"


def test_a_workspace_keeps_its_limit():
    act = conversation(connect_fs(max_size_mb=0.001), ("write", ("a", bytes(5000), "w")))
    assert act.errors == ["builtins.OSError"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["read", "write", "list", "glob", "stat", "x", "utime"]), _PART), max_size=4
    )
)
def test_any_request_of_files_ends_in_a_result(asked):
    def act(puppet, frame):
        if frame.kind == "run":
            for name, part in asked:
                puppet.peer.send({"k": "ask", "what": "file", "name": name, "v": 1}, [part])
            puppet.theirs.shutdown(socket.SHUT_WR)

    session, _ = session_with(act, files=connect_fs())
    assert type(session.run("x").error) is EvalError
    session.close()
