"""A look at a stream before it is loaded: its opcodes, its lengths, how deep its tuples are.

A regular expression goes over runs of opcodes whose length it knows (see `opcode_grammar`), so that reading
a stream costs a fraction of loading it.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import NamedTuple

from agex.errors import StateCorrupt
from agex.values.checks.opcode_grammar import MANY, plain_runs, runs, safe_runs, shallow_runs

__all__ = [
    "DOES",
    "DROP",
    "FEW",
    "GET",
    "MANY",
    "MARK",
    "MEMO",
    "PAIR",
    "POP",
    "PUSH",
    "SIZES",
    "TAKES",
    "Seen",
    "after",
    "at_most",
    "audit",
    "compile_patterns",
    "count",
    "surplus",
    "unframed",
]

_TUPLES = b"t\x85\x86\x87\x91R"  # the last two: a frozenset, a call, whose result may be a kind of tuple
_RUN = runs()
_LENGTHS = {0x8C: 1, 0x58: 4, 0x8D: 8, 0x43: 1, 0x42: 4, 0x8E: 8, 0x96: 8, 0x8A: 1, 0x8B: 4}
"""Opcodes with an argument of some length, and how many bytes say which."""

_DEEPEST = 50_000
"""Tuples in tuples: a hash goes through them by recursion in C, and so through some 150 bytes of the stack
for each, of which a thread has 8 MB. The pickler itself gives up long before."""


class Seen(NamedTuple):
    """Result of the audit of a stream."""

    shorter: bytes
    """The same opcodes, with a short item in the place of each that is long."""
    may_be_alike: bool
    """Whether it may put many keys somewhere that have one hash."""
    first_noted: int | None = None
    """Position among the opcodes of the first noted tuple, or their end. None where tuples are many."""


def compile_patterns() -> None:
    """Compile the patterns of audits, some 20 ms: before a process forks others that decode."""
    for pattern in (plain_runs, safe_runs, shallow_runs):
        pattern()


def audit(stream: bytes) -> Seen:
    """Check that a stream is made of the opcodes that the encoder writes.

    There is none that builds an object by its class, sets its state, or names a global as text; all
    calls are REDUCE. And no length says more than there is, so that none makes the unpickler reserve
    memory for it.

    Args:
        stream: opcodes without frames, which may hide where others begin.

    Raises:
        StateCorrupt: it is not, or it nests more deeply than any value does.
    """
    if stream[-1:] != b".":
        raise StateCorrupt("a stored value is cut short")
    if (seen := _plainly(stream)) is not None:  # most often, and then there is no need to pass it again
        return seen
    is_safe = _is_safe(stream)
    shorter = stream if is_safe else _without_long(stream)
    if _may_be_deep(shorter) and _depth(shorter) > _DEEPEST:
        raise StateCorrupt("a stored value is nested more deeply than any value is")
    return Seen(
        shorter, not (is_safe or len(shorter) <= _FEW_BYTES or (shorter is not stream and _is_safe(shorter)))
    )


def _plainly(stream: bytes) -> Seen | None:
    """Check a stream that has few tuples, and no keys that may have one hash; give None for another."""
    run, size = plain_runs().match, len(stream)
    pieces: list[bytes] = []
    at = last = left_out = tuples = 0
    noted = None
    while (at := run(stream, at).end()) < size:  # type: ignore[union-attr]  # it matches nothing, too
        opcode = stream[at]
        if opcode in _JOINS:
            tuples += 1
            at += 1
            if tuples > _SOME:
                return None
            if noted is None and stream.startswith(_NOTE, at):
                noted = at - left_out
        elif SIZES[opcode]:
            return None
        else:
            pieces += (stream[last:at], _UNLIKE if opcode in _LONG else _EMPTY)
            last = after(stream, at)
            left_out += last - at - len(_EMPTY)
            at = last
        if stream.startswith(_NOTE, at):
            at += 1
    shorter = b"".join((*pieces, stream[last:])) if pieces else stream
    return Seen(shorter, may_be_alike=False, first_noted=len(shorter) if noted is None else noted)


_NOTE, _JOINS = b"\x94", b"tR\x85\x86\x87"


def _may_be_deep(shorter: bytes) -> bool:
    if len(shorter) <= _DEEPEST or at_most(shorter, _TUPLES) <= _DEEPEST:
        return False
    if count(shorter, runs(_TUPLES), _TUPLES, _SOME) <= _SOME:  # they are bytes of texts and numbers
        return False
    return count(shorter, shallow_runs(), _TUPLES) > _DEEPEST


_SOME = 1000


def _without_long(stream: bytes) -> bytes:
    at, size, run = 0, len(stream), _RUN.match
    pieces: list[bytes] = []
    while True:
        end = run(stream, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        if end >= size:
            return b"".join((*pieces, stream[at:])) if pieces else stream
        if SIZES[stream[end]]:
            raise StateCorrupt(f"a stored value uses the opcode {stream[end]:#x}, which no encoder writes")
        pieces += (stream[at:end], _UNLIKE if stream[end] in _LONG else _EMPTY)
        at = after(stream, end)


_EMPTY, _UNLIKE, _LONG = b"\x8c\x00", b"\x8a\x00", b"\x8a\x8b\x96"


def _is_safe(stream: bytes) -> bool:
    """Return whether a stream has only opcodes that are allowed, none of them long, and no keys alike."""
    if len(stream) <= _FEW_BYTES:
        return False
    found = safe_runs().match(stream)
    assert found is not None  # it matches nothing, too
    return found.end() == len(stream)


_FEW_BYTES = 2 * MANY
"""A shorter stream has fewer keys that may share a hash."""


def at_most(stream: bytes, opcodes: bytes) -> int:
    """Return the most of some opcodes that there may be: they may be bytes of a text as well."""
    return len(stream) - len(stream.translate(None, opcodes))


def count(stream: bytes, runs: re.Pattern[bytes], counted: bytes, most: float = math.inf, at: int = 0) -> int:
    """Check the opcodes; return how many of the counted ones the runs left out, or more than *most*."""
    size, many, run = len(stream), 0, runs.match
    while True:
        found = run(stream, at)
        assert found is not None  # it matches nothing, too
        at = found.end()
        if at >= size or many > most:
            return many
        if stream[at] in counted:
            many += 1
        elif SIZES[stream[at]]:
            raise StateCorrupt(f"a stored value uses the opcode {stream[at]:#x}, which no encoder writes")
        at = at + SIZES[stream[at]] if SIZES[stream[at]] else after(stream, at)


_SET, _FEWER, _SETS, _LISTS = 240, 88, b"\x8f\x91", b"]}"


@cache
def _no_sets() -> re.Pattern[bytes]:
    return runs(_SETS)


@cache
def _no_lists() -> re.Pattern[bytes]:
    return runs(_LISTS, rb"[\]}]\x94|")


def surplus(stream: bytes, enough: float = math.inf) -> int:
    """Return the bytes that the containers of a stream take beyond those that it usually pays for.

    That is a set, of 240 bytes for two in the stream, and a list or dict to which nothing refers, which the
    pickler never writes. Counting stops at *enough*.
    """
    if at_most(stream, _SETS + _LISTS) * _SET <= len(stream) * _TOLERATED:
        return 0
    found = 0
    for opcodes, passed, each in ((_SETS, _no_sets, _SET), (_LISTS, _no_lists, _FEWER)):
        most = at_most(stream, opcodes)
        if opcodes == _LISTS and most * each > len(stream) * _TOLERATED:
            most -= stream.count(b"]\x94") + stream.count(b"}\x94")
        if most * each > len(stream) * _TOLERATED:  # else they may be bytes of a text as well
            found += each * count(stream, passed(), opcodes, enough / each)
    return found


_TOLERATED = 8
"""Bytes for each byte of a stream that are not counted."""


def after(stream: bytes, at: int) -> int:
    """Return where an opcode with an argument of some length ends."""
    width = _LENGTHS.get(stream[at])
    if width is None:
        raise StateCorrupt(f"a stored value uses the opcode {stream[at]:#x}, which no encoder writes")
    end = at + 1 + width + int.from_bytes(stream[at + 1 : at + 1 + width], "little")
    if end > len(stream):  # a regular expression would begin at the end of the stream, and find no fault
        raise StateCorrupt("a stored value is cut short")
    return end


def unframed(stream: bytes) -> bytes:
    """Return a stream without the frames that the pickler writes one after the other."""
    if stream[2:3] == b"\x95" and int.from_bytes(stream[3:11], "little") == len(stream) - 11:
        return stream[:2] + stream[11:]
    pieces, at = [stream[:2]], 2
    while stream[at : at + 1] == b"\x95":
        end = at + 9 + int.from_bytes(stream[at + 1 : at + 9], "little")
        if end > len(stream):
            raise StateCorrupt("a stored value is cut short")
        pieces.append(stream[at + 9 : end])
        at = end
        if at < len(stream) and not SIZES[stream[at]]:  # what is larger than a frame stands between two
            at = after(stream, at)
            pieces.append(stream[end:at])
            if stream[at : at + 1] == b"\x94":
                at += 1
                pieces.append(b"\x94")
    return b"".join((*pieces, stream[at:]))


# The effect of each opcode on a stack of depths, and the size of opcodes that do not state their length.
PUSH, MEMO, GET, PAIR, FEW, MARK, MANY, DROP, POP, NOTHING = range(10)
DOES = bytearray([NOTHING] * 256)
for _does, _opcodes in (
    (PUSH, b")NKMJG]}\x88\x89\x8f\x97\x8cX\x8dCB\x8e\x96\x8a\x8b"),
    (MEMO, b"\x94"), (GET, b"hj"), (PAIR, b"\x86R"), (FEW, b"\x85\x87"), (MARK, b"("),
    (MANY, b"t\x91"), (DROP, b"eu1\x90"), (POP, b"0as\x93."),
):  # fmt: skip
    for _opcode in _opcodes:
        DOES[_opcode] = _does
SIZES = bytearray([1] * 256)
for _size, _opcodes in ((2, b"Kh\x80"), (3, b"M"), (5, b"Jj"), (9, b"G\x95"), (0, bytes(_LENGTHS))):
    for _opcode in _opcodes:
        SIZES[_opcode] = _size
TAKES = {0x85: 1, 0x87: 3, 0x30: 1, 0x61: 1, 0x73: 2, 0x93: 1, 0x2E: 1}  # two names make one global


def _depth(stream: bytes) -> int:
    """Return how deeply tuples and calls are nested, by what they do to the depths on the stack."""
    stack: list[int] = []
    marks: list[int] = []
    memo: list[int] = []
    push, pop, note = stack.append, stack.pop, memo.append
    deepest = at = 0
    end = len(stream)
    try:
        while at < end:
            opcode = stream[at]
            does = DOES[opcode]
            if does == PUSH:
                push(0)
            elif does == MEMO:
                note(stack[-1])
            elif does == GET:
                push(
                    memo[
                        stream[at + 1]
                        if opcode == 0x68
                        else int.from_bytes(stream[at + 1 : at + 5], "little")
                    ]
                )
            elif does == PAIR:
                one, other = pop(), pop()
                push((one if one > other else other) + 1)  # noqa: FURB136 - a call costs more than all else here
            elif does == MARK:
                marks.append(len(stack))
            elif does == DROP:
                del stack[marks.pop() :]
            elif does == POP:
                takes_mark = opcode == 0x30 and marks[-1:] == [len(stack)]
                del (marks if takes_mark else stack)[-TAKES[opcode] :]
            elif does in {FEW, MANY}:
                start = marks.pop() if does == MANY else -TAKES[opcode]
                stack[start:] = [1 + max(stack[start:], default=0)]
            if stack and stack[-1] > deepest:
                deepest = stack[-1]
            at = at + SIZES[opcode] if SIZES[opcode] else after(stream, at)
    except IndexError:
        raise StateCorrupt("a stored value takes more from the stack than it put there") from None
    return deepest
