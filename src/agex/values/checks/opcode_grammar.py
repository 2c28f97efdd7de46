"""Grammar of opcodes, as regular expressions that match runs of them.

They are possessive throughout: nothing is tried a second time, and a pass costs some 30 ns an opcode.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = [
    "ATOM",
    "GET",
    "MANY",
    "NUMBER",
    "SHORT",
    "SIZED",
    "many_unlike",
    "plain_runs",
    "runs",
    "safe_runs",
    "shallow_runs",
    "tuple_of",
]


def _bytes(count: int) -> bytes:
    return b".{%d}+" % count if count > 1 else b"." * count


SIZED = b"|".join(re.escape(bytes((n,))) + _bytes(n) for n in range(33))
SHORT = rb"[\x8cC](?:" + SIZED + b")"
"""A text or bytes, of 32 at most: those that are longer are passed one by one."""
NUMBER = rb"[)N\x88\x89]|K.|M..|J.{4}+|G.{8}+|\x8a(?:" + SIZED + b")"
GET = rb"h.|j.{4}+"
ATOM = rb"[\]}\x8f\x97\x98]|(?:G.{8}+)++|" + SHORT + b"|" + NUMBER
_FIXED = (
    rb"|(?:G.{8}+)++|" + SHORT + rb"|(?:M..)++|(?:J.{4}+)++|j.{4}+|\x8a(?:" + SIZED + rb")|\x95.{8}+|\x80\x05"
)


def runs(without: bytes = b"", before: bytes = b"") -> re.Pattern[bytes]:
    """Match opcodes of the encoder without some: those of one byte, and references, with *h*.

    What is *before* is tried first.
    """
    texts = b"" if b"\x94" in without else SHORT + rb"\x94?+|"  # most opcodes are of texts
    single = b".()01Naesu}]\x88\x89\x8f\x90\x93\x94\x97\x98tR\x85\x86\x87\x91".translate(None, without)
    given = b"|[%s]." % b"Kh".translate(None, without)
    fixed = _FIXED if b"h" not in without else _FIXED.replace(rb"|j.{4}+", b"")
    return re.compile(
        b"(?:" + before + texts + b"[" + re.escape(single) + b"]" + given + fixed + b")*+", re.DOTALL
    )


_TEXT = SHORT + rb"\x94?+"
_FEW = b"{0,200}+"
"""Of the opcodes in a small container: even keys of one hash take no longer than they took to write."""
_FLAT_PLAIN = (
    _TEXT + rb"|[\]}\x8f\x93]\x94?+|[a\x97\x98)N\x88\x89]|[Kh].|G.{8}+|M..|[Jj].{4}+|\x8a(?:" + SIZED + b")"
)
_FLAT = rb"[\x94\x85\x86\x87R]|" + _FLAT_PLAIN
"""Opcodes that cannot reach what lies below a mark."""
_ITEM = b"(?:" + NUMBER + b"|" + GET + b")"
_TUPLE = rb"\x85\x94?+|(?:" + NUMBER + rb")(?:\x86\x94?+|(?:" + NUMBER + rb")\x87\x94?+)"
"""The end of one whose first item is an `_ITEM`."""


def _list(flat: bytes) -> bytes:
    return rb"\]\x94?+(?:\((?:" + flat + rb")*+e)?+"


def _few_opcodes(flat: bytes, ends: bytes) -> bytes:
    """Match a few opcodes that are in a container, with smaller ones in it."""
    nested = rb"\((?:" + flat + b"|s)" + _FEW + b"(?:" + flat + b")*+[" + ends + b"]"
    keyed = rb"[}\x8f]\x94?+\((?:" + flat + b"|s)" + _FEW + rb"[u\x90]"
    return b"(?:" + b"|".join((nested, keyed, flat, b"s")) + b")" + _FEW


def _keyed_safely(
    loose: bytes, flat: bytes, key: bytes, value: bytes, *, ends: bytes, freezes: bytes
) -> re.Pattern[bytes]:
    """Match opcodes that put no keys anywhere which may have one hash, unless they are few.

    Args:
        loose: opcodes that may stand anywhere.
        flat: those of items in small containers.
        key: what puts a key on the stack.
        value: what puts a value there.
        ends: opcodes that end what a mark began.
        freezes: those that make a set of what lies above a mark.
    """
    pairs = b"(?:" + _TEXT + value + b")*+"
    batch = rb"\((?:" + _TEXT + _TEXT + b")*+(?:(?:" + _TEXT + b")?+[" + freezes + b"]|" + pairs + b"u?+)"
    small = _few_opcodes(flat, ends)
    fresh_dict = rb"}\x94?+(?:\(" + pairs + small + b"u?+|" + key + value + b"s)?+"
    fresh_set = rb"\x8f\x94?+(?:\((?:" + _TEXT + b")*+" + small + rb"\x90?+)?+"
    batches = b"|".join((loose, b"[Kh].", fresh_dict, batch, fresh_set))
    return re.compile(b"(?:" + batches + _FIXED + b")*+", re.DOTALL)


@cache
def safe_runs() -> re.Pattern[bytes]:
    """Match opcodes that put no keys anywhere which may have one hash, unless they are few.

    Keys may be texts, whose hashes nobody knows beforehand, or those of a container that was made just
    before. Any other opcode that puts in keys ends the run. So does one whose container was begun before
    the run: what begins it stands with what ends it in one alternative.
    """
    loose = rb"[.)01Nae\]\x88\x89\x93\x94\x97\x98tR\x85\x86\x87]"
    key = b"(?:" + _TEXT + b"|" + _ITEM + rb"\x94?+)"
    value = b"(?:" + _TEXT + b"|" + _ITEM + rb"\x94?+(?:" + _TUPLE + b")?+|" + _list(_FLAT) + b")"
    return _keyed_safely(loose, _FLAT, key, value, ends=b"te", freezes=rb"\x90\x91")


@cache
def plain_runs() -> re.Pattern[bytes]:
    """Match what `safe_runs` does, without tuples and calls, and without notes of what may be one.

    A note stands beside the opcode that has put on the stack what it notes.
    """
    loose = b"(?:" + _TEXT + rb")++|[.)01Nae\x88\x89\x97\x98]|[\]\x93]\x94?+"
    value = b"(?:" + _TEXT + b"|" + _ITEM + b"|" + _list(_FLAT_PLAIN) + b")"
    return _keyed_safely(
        loose, _FLAT_PLAIN, b"(?:" + _TEXT + b"|" + _ITEM + b")", value, ends=b"e", freezes=rb"\x90"
    )


@cache
def shallow_runs() -> re.Pattern[bytes]:
    """Match opcodes that nest nothing, and tuples and calls whose parts are no tuples."""
    atom = b"(?:" + _TEXT + b"|(?:" + NUMBER + rb")\x94?+)"
    flat = tuple_of(atom) + rb"|\(" + atom + b"{0,20}+t"
    return runs(b"tR\x85\x86\x87\x91", b"(?:" + flat + rb")(?:\x94?+R)?+|")


def tuple_of(item: bytes) -> bytes:
    """Match one to three items and the opcode that takes as many: one that takes more takes a tuple, too."""
    return item + rb"(?:\x85|" + item + rb"(?:\x86|" + item + rb"\x87))"


@cache
def many_unlike() -> re.Pattern[bytes]:
    """Match a number of opcodes whose values can be made to share a hash, and those between.

    These are long integers, floats, tuples and results of calls.
    """
    alike = runs(b"tR\x85\x86\x87\x91").pattern.replace(rb"|(?:G.{8}+)++", b"")
    alike = alike.replace(rb"|\x8a(?:" + SIZED + b")", b"")
    unlike = rb"(?:[tR\x85\x86\x87\x91]|G.{8}+|\x8a(?:" + SIZED + b"))"
    return re.compile(b"(?:" + alike + unlike + b"){%d}+" % MANY, re.DOTALL)


MANY = 2000
"""Keys that may have one hash: a tenth of a second."""
