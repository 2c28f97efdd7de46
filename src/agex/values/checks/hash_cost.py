"""Cost of hashing a decoded value, found in its stream before it is loaded.

A hash goes through shared tuples again and again: sixty pairs, each of the one before twice, are 300 bytes
and a hash that never ends, in C code that nothing interrupts. And keys that C code puts in at once are beyond
the reach of the clock that stops what takes too long (see `decode_budget.Clock`). So the opcodes are
followed by the weight of what they put on the stack. Runs of plain items, which are nearly all of a stream,
are passed by a regular expression.
"""

from __future__ import annotations

import math
import re
from functools import cache

from agex.errors import StateCorrupt
from agex.values.adapters import stdlib as plain
from agex.values.checks import opcode_audit as audit
from agex.values.checks.opcode_grammar import ATOM, GET, MANY, NUMBER, SHORT, many_unlike, runs, tuple_of

__all__ = ["Weighed", "weigh"]

_HEAVIEST = 1 << 24
"""Visits of a hash: some tenths of a second. All hashes together may take as many, and more for the bytes."""
_VISITS_A_BYTE = 16
_LIGHT = 64
"""Visits of a value that may be referred to without a check of its type."""
_BATCH = 1000
"""Keys that the pickler puts in at once; no other writer puts in more."""
_APPENDS, _SET, _SETS, _ADDS, _FREEZES, _CALLS, _DISCARD, _FRAME, _LIST = b"esu\x90\x91R0\x95]"

_A = b"(?:" + ATOM + rb")\x94?+"
_ONE = rb"(?:(?:[\]}\x8f\x97\x98]|" + SHORT + b"|" + NUMBER + rb")\x94?+|" + GET + b")"
_TUPLE = b"(?:" + tuple_of(_ONE) + rb"\x94?+|" + _ONE + b")"


def _batches(token: bytes) -> re.Pattern[bytes]:
    """Match a batch of tokens and of small containers of them."""
    small = rb"[\]}\x8f]\x94?+\(" + token + rb"{0,200}+[eu\x90]"
    return re.compile(rb"\((?:" + small + b"|" + token + rb")*+[eu\x90]", re.DOTALL)


@cache
def _without_tuples() -> re.Pattern[bytes]:
    return _batches(rb"(?:\x94|" + ATOM + rb"|h.(?!\x94)|j.{4}+(?!\x94))")


@cache
def _without_references() -> re.Pattern[bytes]:
    return _batches(rb"(?:[\x94\x85\x86\x87]|" + ATOM + b")")


@cache
def _list() -> re.Pattern[bytes]:
    return re.compile(rb"\((?:" + _A + b"|" + GET + b")*+e", re.DOTALL)


@cache
def _few_keys(item: bytes) -> re.Pattern[bytes]:
    """Match a batch of no more keys than the pickler puts in."""
    few = b"{0,%d}+" % _BATCH
    pairs, keys = b"(?:" + item + item + b"?+)" + few + b"u", b"(?:" + item + b")" + few + rb"\x90"
    return re.compile(rb"\((?:" + pairs + b"|" + keys + b")", re.DOTALL)


@cache
def _frozen() -> re.Pattern[bytes]:
    """Match a frozenset of what is no tuple and not noted."""
    return re.compile(rb"\((?:" + ATOM + rb")*+\x91", re.DOTALL)


@cache
def _noted() -> re.Pattern[bytes]:
    return re.compile(b"(?:" + ATOM + b"|" + GET + rb"|[(eu\x90\x85\x86\x87])*+\x94", re.DOTALL)


_UNLIKE = b"G\x8a\x8bt\x85\x86\x87\x91R"
"""Opcodes whose values can be made to share a hash: long integers, floats, tuples, results of calls."""
_JOINS, _GETS, _KEYED = b"tR\x85\x86\x87\x91", b"hj", b"su\x90\x91R"
_LEAVES = b"tR\x85\x86\x87\x91()01aeus\x90.\x98"
"""Opcodes after which a tuple may lie on top."""
_LEAVE = b"[" + re.escape(_LEAVES) + b"]"


def _after_notes(pattern: bytes) -> bytes:
    """Return a pattern that ends before a note after opcodes that leave the stack as it is."""
    return pattern.replace(rb"|\x95.{8}+|\x80\x05", rb"|\x95.{8}+(?!\x94)|\x80\x05(?!\x94)")


@cache
def _unnoted() -> re.Pattern[bytes]:
    """Match opcodes after which no tuple is noted, be it that something was dropped from above it."""
    return re.compile(_after_notes(runs(_LEAVES, _LEAVE + rb"(?!\x94)|").pattern), re.DOTALL)


@cache
def _unreferred() -> re.Pattern[bytes]:
    return runs(_GETS)


@cache
def _notes() -> re.Pattern[bytes]:
    """Match notes, with the opcode before if it may leave a tuple, and references."""
    rest = _after_notes(runs(b"\x94hj" + _LEAVES, _LEAVE + rb"(?!\x94)|").pattern)
    return re.compile(rest + b"(" + _LEAVE + rb"\x94++|\x94|(?:h.|j.{4}+)\x94*+|[\x80\x95]|\Z)", re.DOTALL)


_UNCLEAR = frozenset({b"\x80", b"\x95"})
"""Notes of what lies somewhere before."""


_FROZEN = b"".join(
    b"\x8c" + bytes((len(name),)) + name.encode()
    for name in (plain.make_frozenset.__module__, plain.make_frozenset.__qualname__)
) + b"\x93(]"  # fmt: skip


class Weighed:
    """Result of the look at a stream.

    Attributes:
        stream: to be loaded in its place, where large frozensets are made by a constructor.
        is_metered: whether its keys may have one hash.
    """

    def __init__(self, stream: bytes, *, is_metered: bool) -> None:
        self.stream = stream
        self.is_metered = is_metered


def weigh(stream: bytes, seen: audit.Seen) -> Weighed:
    """Check that nothing in a stream takes long to hash, and say whether keys must be watched.

    Args:
        stream: without frames.
        seen: what the audit saw of it.

    Raises:
        StateCorrupt: something does.
    """
    is_metered = seen.may_be_alike and _has_many_unlike(seen.shorter)
    if not (is_metered or _may_be_heavy(seen)):
        return Weighed(stream, is_metered=False)
    try:
        walk = _Walk(stream)
    except IndexError:
        raise StateCorrupt("a stored value takes more from the stack than it put there") from None
    is_metered = is_metered and walk.keyed >= MANY
    return Weighed(walk.edited() if is_metered else stream, is_metered=is_metered)


def _has_many_unlike(shorter: bytes) -> bool:
    return audit.at_most(shorter, _UNLIKE) >= MANY and many_unlike().match(shorter) is not None


def _may_be_heavy(seen: audit.Seen) -> bool:
    """Return whether tuples that are referred to may be more than the opcodes that make them."""
    shorter, first = seen.shorter, seen.first_noted
    if first == len(shorter):
        return False
    if not (joins := audit.at_most(shorter, _JOINS)) or not (gets := audit.at_most(shorter, _GETS)):
        return False
    most = math.log(_HEAVIEST / len(shorter) / (1 + audit.at_most(shorter, _KEYED)))
    if (joins + 1) * math.log1p(gets / (joins + 1)) <= most:  # as if each doubled all that there is
        return False
    if not _may_refer_to_tuples(shorter):
        return False
    if first is None:
        first = _passed(shorter, _unnoted(), 0)
    if _passed(shorter, _unreferred(), first) >= len(shorter):  # nothing is referred to after a tuple
        return False
    return _growth(shorter, max(most, math.log(_VISITS_A_BYTE))) > 0


def _may_refer_to_tuples(shorter: bytes) -> bool:
    """Return whether bytes that look like references may be to a tuple, where none is to a large number."""
    if len(shorter) >= _MANY_NOTES or _LARGE_TARGET.search(shorter):
        return True
    targets = {each[0] for each in set(_TARGETS.findall(shorter))}
    number = 0
    for found in _notes().finditer(shorter):
        each = found[1]
        if each == b"\x94":
            number += 1
            continue
        if not each or number > _LARGEST:
            break
        if each in _UNCLEAR:
            return True
        noted = range(number, number + len(each) - (2 if each[0] == _GETS[0] else 1))
        if not targets.isdisjoint(noted):
            return True
        number += len(noted)
    return False


_TARGETS = re.compile(b"h(?=(.))", re.DOTALL)
_LARGEST, _MANY_NOTES = 255, 1 << 23
_LARGE_TARGET = re.compile(rb"j..[\x00-\x7f]\x00", re.DOTALL)
"""A reference to one of fewer notes than that."""


def _growth(shorter: bytes, most: float) -> float:
    """Return how far beyond *most* the logarithm is of how much heavier references make tuples.

    References to what was noted before the first of them add no more than each all that there is. So do those
    to what was noted before the next, and so on.
    """
    tuples: set[int] = set()
    number = found = began = 0
    grown = -most
    may_stop = not _LARGE_TARGET.search(shorter)
    for match in _notes().finditer(shorter):
        each = match[1]
        if may_stop and number > _LARGEST:  # what is noted from here on is not referred to
            rest = sum(target[0] in tuples for target in _TARGETS.findall(shorter, match.start()))
            if grown + math.log1p(found) + math.log1p(rest) <= 0:
                return -1
            may_stop = False
        if each == b"\x94":
            number += 1
            continue
        if not each:
            break
        if each in _UNCLEAR:
            return math.inf
        width = 2 if each[0] == _GETS[0] else 5 if each[0] == _GETS[1] else 1
        is_tuple = width == 1
        if width > 1 and (target := each[1] if width == 2 else int.from_bytes(each[1:5], "little")) in tuples:
            is_tuple = True
            if target >= began:
                grown += math.log1p(found)
                found, began = 0, number
            found += 1
            if grown + math.log1p(found) > 0:
                return grown + math.log1p(found)
        for _ in range(len(each) - width):
            if is_tuple:
                tuples.add(number)
            number += 1
    return grown + math.log1p(found) if found or began else -1


def _passed(stream: bytes, runs: re.Pattern[bytes], at: int) -> int:
    """Return where the first opcode stands that is not in *runs*."""
    while True:
        found = runs.match(stream, at)
        assert found is not None  # it matches nothing, too
        at = found.end()
        if at >= len(stream) or audit.SIZES[stream[at]]:
            return at
        at = audit.after(stream, at)


def _has(stream: bytes, opcodes: bytes, start: int, end: int) -> bool:
    """Return whether any of some bytes is there; it may also be part of a text."""
    return any(stream.find(opcode, start, end) >= 0 for opcode in opcodes)


class _Walk:
    """Follows what each opcode does to the stack, by the weight of what lies there."""

    def __init__(self, stream: bytes, *, memo: list[int] | None = None) -> None:
        self._stream = stream
        self._is_step_by_step = memo is not None
        self._stack: list[int] = []
        self._marks: list[tuple[int, int]] = []
        self._memo: list[int] = [] if memo is None else memo
        self._gaps: list[tuple[int, int, int]] = []
        """How many were noted before each run that was passed, and its place: its own are not counted yet."""
        self._heaviest = 1
        self.keyed = 0
        """Keys of containers that are not small, or bytes of them."""
        self._visits = _HEAVIEST + _VISITS_A_BYTE * len(stream)
        self._edits: list[tuple[int, int, bytes]] = []
        """Where bytes are left out, how many, and what stands in their place."""
        self._run()

    def edited(self) -> bytes:
        """Return the stream to be watched.

        It has no frames, which are read as wholes, and a constructor makes large frozensets piece by piece.
        """
        pieces: list[bytes] = []
        last = 0
        for at, count, instead in sorted(self._edits):
            pieces += (self._stream[last:at], instead)
            last = at + count
        return b"".join((*pieces, self._stream[last:]))

    def _run(self) -> None:
        stream, stack, memo, marks = self._stream, self._stack, self._memo, self._marks
        does_of, size_of, end = audit.DOES, audit.SIZES, len(self._stream)
        at = 0
        while at < end:
            opcode = stream[at]
            does = does_of[opcode]
            if does == audit.PUSH:
                stack.append(1)
            elif does == audit.MEMO:
                memo.append(stack[-1])
                self._heaviest = max(self._heaviest, stack[-1])
            elif does == audit.GET:
                width = 1 if opcode == 0x68 else 4
                stack.append(self._noted(int.from_bytes(stream[at + 1 : at + 1 + width], "little")))
            elif does == audit.MARK:
                flat = self._flat(at)
                if flat > at:
                    at = flat
                    continue
                marks.append((len(stack), at))
            elif does == audit.DROP:
                self._drop(opcode)
            elif does == audit.POP:
                self._pop(opcode)
            elif does in {audit.PAIR, audit.FEW, audit.MANY}:
                self._join(opcode, does, at)
            elif opcode == _FRAME:
                self._edits.append((at, 9, b""))
            at = at + size_of[opcode] if size_of[opcode] else audit.after(stream, at)

    def _pop(self, opcode: int) -> None:
        if opcode == _DISCARD and self._marks and self._marks[-1][0] == len(self._stack):  # it takes the mark
            self._marks.pop()
            return
        if opcode == _SET:
            self.keyed += 1
            self._visit(self._stack[-2])
        del self._stack[-audit.TAKES[opcode] :]

    def _flat(self, at: int) -> int:
        """Pass the batch of plain items that begins here; return where it ends, and *at* where none does."""
        stream = self._stream
        if self._is_step_by_step:
            return at
        found = None
        if stream[at - 1] != _LIST and stream[at - 2 : at] != b"]\x94":
            found = _few_keys(_ONE).match(stream, at) if self._heaviest <= _LIGHT else None
            if found is None and (frozen := _frozen().match(stream, at)) is not None:
                return self._froze(at, frozen.end())
        is_few = found is not None
        found = found or _without_tuples().match(stream, at)
        if found is None:
            found = _without_references().match(stream, at)
        elif self._heaviest > _LIGHT and _has(stream, b"hj", at, found.end()):
            found = _list().match(stream, at)
        if found is None:
            return at
        end = found.end()
        if stream[end - 1] != _APPENDS:
            few = found if is_few else _few_keys(_TUPLE).match(stream, at)
            if few is None or few.end() != end:
                return at
            self.keyed += end - at
        if stream.find(b"\x94", at, end) >= 0:
            self._gaps.append((len(self._memo), at, end))
        return end

    def _froze(self, at: int, end: int) -> int:
        """Pass a frozenset of what is no tuple."""
        weight = end - at
        if not _BATCH < weight < _HEAVIEST:
            return at
        self.keyed += weight
        self._visit(weight)
        self._stack.append(weight)
        self._edits += ((at, 0, _FROZEN), (end - 1, 1, b"etR"))
        return end

    def _noted(self, number: int) -> int:
        """Return the weight of what was noted under a number."""
        if self._gaps and number >= self._gaps[0][0]:
            self._count_gaps()
        return self._memo[number]

    def _count_gaps(self) -> None:
        counted: list[int] = []
        last = 0
        for before, start, end in self._gaps:
            batch = self._stream[start + 1 : end - 1]
            has_tuples = _has(batch, b"\x85\x86\x87", 0, len(batch))
            counted += self._memo[last:before]
            if has_tuples:
                _Walk(batch, memo=counted)
            else:
                counted += [1] * len(_noted().findall(batch))
            last = before
        self._memo[:] = counted + self._memo[last:]
        self._gaps.clear()

    def _drop(self, opcode: int) -> None:
        start, _ = self._marks.pop()
        count = len(self._stack) - start
        if opcode in {_SETS, _ADDS}:
            keys = self._stack[start :: 2 if opcode == _SETS else 1]
            if len(keys) > _BATCH:
                raise StateCorrupt("a stored value puts in more keys at once than any does")
            self.keyed += len(keys)
            self._visit(sum(keys))
        if count:
            del self._stack[start:]

    def _join(self, opcode: int, does: int, at: int) -> None:
        stack = self._stack
        if does == audit.MANY:
            start, begins = self._marks.pop()
            if opcode == _FREEZES:
                self.keyed += len(stack) - start
                self._visit(sum(stack[start:]))
                if len(stack) - start > _BATCH:
                    self._edits += ((begins, 0, _FROZEN), (at, 1, b"etR"))
        else:
            start = -2 if does == audit.PAIR else -audit.TAKES[opcode]
            if opcode == _CALLS:
                self._visit(stack[-1])
        stack[start:] = [1 + sum(stack[start:])]
        if stack[-1] > _HEAVIEST:
            raise StateCorrupt("a stored value would take too long to hash")

    def _visit(self, weight: int) -> None:
        self._visits -= weight
        if self._visits < 0:
            raise StateCorrupt("the keys of a stored value would take too long to hash")
