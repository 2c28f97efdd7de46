"""A worker that uses the terminal to do harm: it gets the commands of a script, while one runs, and no more.

Stopped by: isolation.rpc.
"""

from __future__ import annotations

import pytest
from test_hostile_worker import DONE, sends, session_with, stream, well

from agex.errors import EvalError
from agex.files import connect_fs
from agex.shell import TerminalCommand

RAN: list[object] = []
GIVEN = {"note": TerminalCommand(name="note", handler=lambda context: RAN.append(context.args))}


def call(*args, name="note", **kwargs):
    return {"k": "ask", "what": "command", "of": "", "name": name, "v": 1}, stream((args, kwargs))


def asks(*given, **settings):
    header, part = call(*given, **settings)
    return sends(header, part)


def with_files(act):
    return session_with(act, files=connect_fs())


def test_a_command_is_not_asked_for_while_no_script_runs():
    RAN.clear()
    session, made = with_files(asks([], b"", {}, ""))
    error = session.run("x").error
    assert type(error) is EvalError
    assert "no script runs" in str(error)
    assert (made[0].killed, RAN) == (True, [])
    session.close()


def test_nor_once_it_is_over():
    RAN.clear()
    session, _ = with_files(lambda puppet, frame: _answer_and_ask(puppet))
    assert session.run_script("true", GIVEN).value.text == ""
    error = session.run("x").error
    assert "out of turn" in str(error) or "no script runs" in str(error)
    assert RAN == []
    session.close()


def _answer_and_ask(puppet):
    puppet.peer.send({**DONE, "v": 1}, [b"", b"", b"", stream(("", False, 0))])
    header, part = call([], b"", {}, "")
    puppet.peer.send(header, [part])


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (asks([], b"", {}, "", name="other"), "which it was not given"),
        (asks([], b"", {}, "", name="__class__"), "which it was not given"),
        (asks([], b"", {}, "", name=None), "which it was not given"),
        (asks([], b"", {}, "", name=["note"]), "which it was not given"),
        (asks(), "something else than it takes"),
        (asks([], b"", {}), "something else than it takes"),
        (asks([], b"", {}, "", ""), "something else than it takes"),
        (asks([], b"", {}, {}), "something else than it takes"),
        (asks(("a",), b"", {}, ""), "something else than it takes"),
        (asks([1], b"", {}, ""), "something else than it takes"),
        (asks([b"a"], b"", {}, ""), "something else than it takes"),
        (asks([], "text", {}, ""), "something else than it takes"),
        (asks([], b"", {"A": 1}, ""), "something else than it takes"),
        (asks([], b"", {1: "a"}, ""), "something else than it takes"),
        (asks([], b"", [], ""), "something else than it takes"),
        (asks([], b"", {}, "", env={}), "something else than it takes"),
        (sends({"k": "ask", "what": "command", "of": "", "name": "note", "v": 1}, b"garbage"), "sent what no worker"),
        (sends({**DONE, "v": 0}, b"", b"", b""), "what a script showed"),
        (sends({**DONE, "v": 1}, b"", b"", b"", stream("text")), "what a script showed"),
        (sends({**DONE, "v": 1}, b"", b"", b"", stream(("text", 0, 0))), "what a script showed"),
        (sends({**DONE, "v": 1}, b"", b"", b"", stream(["text", False, 0])), "what a script showed"),
        (sends({**DONE, "v": 1}, b"", b"", b"", stream((b"text", False, 0))), "what a script showed"),
    ],
)  # fmt: skip
def test_what_no_worker_sends_of_a_script_ends_it(act, says):
    RAN.clear()
    session, made = with_files(act)
    result = session.run_script("note", GIVEN)
    assert type(result.error) is EvalError
    assert says in str(result.error)
    assert (made[0].killed, RAN) == (True, [])
    assert session.run("x").echo == "fine"
    session.close()


def test_a_commands_files_are_the_guests():
    def act(puppet, frame):
        for path, folder in (
            ("/etc/passwd", ""),
            ("../../../etc/passwd", ""),
            ("passwd", "/etc"),
            ("passwd", "../../etc"),
        ):
            header, part = call([path], b"", {}, folder, name="show")
            puppet.peer.send(header, [part])
            replies.append(puppet.peer.receive())
        puppet.peer.send({**DONE, "v": 1}, [b"", b"", b"", stream(("", False, 0))])

    replies = []
    show = TerminalCommand(name="show", handler=lambda context: context.fs.read(context.args[0]).decode())
    session, _ = with_files(act)
    assert session.run_script("true", {"show": show}).value.text == ""
    assert all(b"root:" not in bytes(part) for reply in replies for part in reply.parts)
    assert len(replies) == 4
    session.close()


def test_a_command_that_ends_everything_ends_the_script_only():
    def leave(context):
        raise SystemExit(3)

    def act(puppet, frame):
        header, part = call([], b"", {}, "", name="leave")
        replies.append(
            puppet.ask({name: value for name, value in header.items() if name != "k"}, part).header
        )
        well(puppet, frame) if frame.kind == "run" else puppet.peer.send(
            {**DONE, "v": 1}, [b"", b"", b"", stream(("", True, 1))]
        )

    replies = []
    session, _ = with_files(act)
    assert session.run_script("true", {"leave": TerminalCommand(name="leave", handler=leave)}).value.failed
    assert "SystemExit" in replies[0]["error"]["text"]
    session.close()
