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
    "runs",
    "safe_runs",
    "shallow_runs",
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
    single = b".()01Naesu}]\x88\x89\x8f\x90\x93\x94\x97\x98tR\x85\x86\x87\x91".translate(None, without)
    given = b"|[%s]." % b"Kh".translate(None, without)
    fixed = _FIXED if b"h" not in without else _FIXED.replace(rb"|j.{4}+", b"")
    return re.compile(b"(?:" + before + b"[" + re.escape(single) + b"]" + given + fixed + b")*+", re.DOTALL)


_TEXT = SHORT + rb"\x94?+"
_FEW = b"{0,200}+"
"""Of the opcodes in a small container: even keys of one hash take no longer than they took to write."""
_FLAT = (
    rb"[\x94\]}\x8f\x85\x86\x87aR\x93\x97\x98)N\x88\x89]|[Kh].|" + SHORT + rb"|G.{8}+|M..|[Jj].{4}+|"
    rb"\x8a(?:" + SIZED + b")"
)
"""Opcodes that cannot reach what lies below a mark."""
_NESTED = (
    rb"\((?:" + _FLAT + b"|s)" + _FEW + b"(?:" + _FLAT + rb")*+[te]|"
    rb"[}\x8f]\x94?+\((?:" + _FLAT + b"|s)" + _FEW + rb"[u\x90]|" + _FLAT
)
_KEY = b"(?:" + _TEXT + b"|(?:" + NUMBER + b"|" + GET + rb")\x94?+)"
_VALUE = (
    b"(?:"
    + _TEXT
    + b"|(?:"
    + NUMBER
    + b"|"
    + GET
    + rb")\x94?+(?:\x85\x94?+|(?:"
    + NUMBER
    + rb")(?:\x86\x94?+|"
    rb"(?:" + NUMBER + rb")\x87\x94?+))?+|\]\x94?+(?:\((?:" + _FLAT + rb")*+e)?+)"
)
"""Opcodes that put one value on the stack."""


@cache
def safe_runs() -> re.Pattern[bytes]:
    """Match opcodes that put no keys anywhere which may have one hash, unless they are few.

    Keys may be texts, whose hashes nobody knows beforehand, or those of a container that was made just
    before. Any other opcode that puts in keys ends the run. So does one whose container was begun before
    the run: what begins it stands with what ends it in one alternative here.
    """
    pairs = b"(?:" + _TEXT + _VALUE + b")*+"
    batch = rb"\((?:" + _TEXT + _TEXT + rb")*+(?:(?:" + _TEXT + rb")?+[\x90\x91]|" + pairs + b"u?+)"
    small = b"(?:" + _NESTED + b"|s)" + _FEW
    fresh_dict = rb"}\x94?+(?:\(" + pairs + small + b"u?+|" + _KEY + _VALUE + b"s)?+"
    fresh_set = rb"\x8f\x94?+(?:\((?:" + _TEXT + b")*+" + small + rb"\x90?+)?+"
    loose = rb"[.)01Nae\]\x88\x89\x93\x94\x97\x98tR\x85\x86\x87]"
    batches = b"|".join((loose, b"[Kh].", fresh_dict, batch, fresh_set))
    return re.compile(b"(?:" + batches + _FIXED + b")*+", re.DOTALL)


@cache
def shallow_runs() -> re.Pattern[bytes]:
    """Match opcodes that nest nothing, and tuples and calls whose parts are no tuples."""
    atoms = b"(?:" + _TEXT + b"|(?:" + NUMBER + rb")\x94?+)"
    flat = atoms + rb"{1,3}+[\x85\x86\x87]|\(" + atoms + b"{0,20}+t"
    return runs(b"tR\x85\x86\x87\x91", b"(?:" + flat + rb")(?:\x94?+R)?+|")


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
