"""Recipes of groups: a few bytes for a key, and chunks named by their content.

::

    payload = 1, names, address length, number of parts, part (the stream), part for each buffer
            | 2, origin, whether there is code, and the same: for bytes from another level of isolation
    part    = length * 2, the bytes themselves           up to INLINE bytes
            | length * 2 + 1, an address for each block  above

The addresses stand there as they are: a store finds by them which chunks are needed. For 1 GB they are
128 KB. Numbers are unsigned LEB128. Nothing is compressed: level 1 of zlib reads some 70 MB/s, which
would make the first commit of large values several times slower, and random floats do not shrink at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agex.errors import StateCorrupt
from agex.values.base.fingerprint import Fingerprint
from agex.values.base.group import BLOCK, Group

__all__ = ["Cut", "Recipe", "cut", "from_recipe", "put_together", "read_recipe"]

INLINE = 4096  # bytes that stand in the payload itself: a row of a store holds a page without cost
_FORM, _FORM_WITH_ORIGIN = 1, 2

Address = Callable[[memoryview], bytes]
Reader = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Recipe:
    """The parts of one group: bytes, or a length and the addresses of its blocks."""

    names: tuple[str, ...]
    parts: tuple[bytes | tuple[int, tuple[bytes, ...]], ...]
    origin: str = ""
    """See `Group.origin`."""
    has_code: bool = False
    """See `Group.has_code`."""

    @property
    def addresses(self) -> frozenset[bytes]:
        """Every chunk that it takes."""
        return frozenset(a for part in self.parts if isinstance(part, tuple) for a in part[1])

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(part[0] if isinstance(part, tuple) else len(part) for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A group, ready to be stored."""

    payload: bytes
    """The payload, which the key holds."""
    chunks: dict[bytes, memoryview] = field(default_factory=dict)
    """Chunks that the store may not have yet, by address. Views of live memory, as `Group.buffers` are."""
    recipe: Recipe
    """The recipe, to be kept beside the fingerprint: the next cut reuses unchanged addresses."""


def cut(
    group: Group,
    address: Address,
    *,
    now: Fingerprint | None = None,
    before: tuple[Fingerprint, Recipe] | None = None,
) -> Cut:
    """Cut a group into chunks and the payload that puts them together.

    Args:
        group: what to store.
        address: returns the address of a chunk, always of the same length.
        now: the group's fingerprint, if `before` is given.
        before: fingerprint and recipe of an earlier cut; blocks of the same digest keep their address,
            which is not computed again, and are not among the chunks.
    """
    chunks: dict[bytes, memoryview] = {}
    parts: list[bytes | tuple[int, tuple[bytes, ...]]] = []
    for i, data in enumerate((memoryview(group.stream), *group.buffers)):
        if data.nbytes <= INLINE:
            parts.append(bytes(data))
            continue
        known = _known(i, data.nbytes, now, before)
        parts.append((data.nbytes, _addresses(data, address, known, chunks)))
    recipe = Recipe(group.names, tuple(parts), group.origin, bool(group.origin and group.has_code))
    return Cut(payload=_packed(recipe), chunks=chunks, recipe=recipe)


def from_recipe(payload: bytes, read: Reader) -> Group:
    """Put a group together.

    Args:
        payload: from `cut`.
        read: returns a chunk by its address, checked.

    Raises:
        StateCorrupt: the payload is not one, or a chunk does not have the length it must have.
    """
    return put_together(read_recipe(payload), read)


def put_together(recipe: Recipe, read: Reader) -> Group:
    """Put a group together from a recipe that is read already; see `from_recipe`."""
    parts = [part if isinstance(part, bytes) else _joined(*part, read) for part in recipe.parts]
    buffers = tuple([memoryview(part) for part in parts[1:]])
    return Group(
        names=recipe.names,
        stream=bytes(parts[0]),
        buffers=buffers,
        origin=recipe.origin,
        has_code=recipe.has_code,
    )


def _known(
    i: int, size: int, now: Fingerprint | None, before: tuple[Fingerprint, Recipe] | None
) -> tuple[bytes | None, ...]:
    """Return the address that each block of part *i* had, where its digest is what it was."""
    if now is None or before is None or i >= len(before[1].parts):
        return ()
    old, part = before[0].parts[i], before[1].parts[i]
    if isinstance(part, bytes) or old[0] != size:
        return ()
    return tuple(
        address if same == digest else None
        for digest, same, address in zip(now.parts[i][1], old[1], part[1], strict=True)
    )


def _addresses(
    data: memoryview, address: Address, known: tuple[bytes | None, ...], chunks: dict[bytes, memoryview]
) -> tuple[bytes, ...]:
    found: list[bytes] = []
    for n, start in enumerate(range(0, data.nbytes, BLOCK)):
        kept = known[n] if known else None
        if kept is None:
            block = data[start : start + BLOCK]
            kept = address(block)
            chunks[kept] = block
        found.append(kept)
    return tuple(found)


# -- bytes ---------------------------------------------------------------------------------------


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _packed(recipe: Recipe) -> bytes:
    length = next((len(p[1][0]) for p in recipe.parts if isinstance(p, tuple)), 0)
    out = [_number(_FORM)]
    if recipe.origin:
        out = [_number(_FORM_WITH_ORIGIN), _text(recipe.origin), _number(recipe.has_code)]
    out += (_number(len(recipe.names)), *map(_text, recipe.names))
    out += (_number(length), _number(len(recipe.parts)))
    for part in recipe.parts:
        if isinstance(part, bytes):
            out += (_number(len(part) * 2), part)
        else:
            out += (_number(part[0] * 2 + 1), *part[1])
    return b"".join(out)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _number(len(encoded)) + encoded


class _Bytes:
    """Bytes that are read from the front; running out of them is damage."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise StateCorrupt("a stored value's recipe is cut short")
        return self._data[start : self._at]

    def number(self) -> int:
        value = shift = 0
        while shift < 63:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise StateCorrupt("a stored value's recipe holds an impossible number")

    def blocks(self, size: int, length: int) -> Iterator[bytes]:
        count = -(-size // BLOCK)
        if not length or count * length > len(self._data) - self._at:
            raise StateCorrupt("a stored value's recipe is cut short")
        return (self.take(length) for _ in range(count))

    def end(self) -> None:
        if self._at != len(self._data):
            raise StateCorrupt("a stored value's recipe is followed by other bytes")


def read_recipe(payload: bytes) -> Recipe:
    """Read a payload: the content of the group, and the addresses of its parts.

    Raises:
        StateCorrupt: the payload is not one.
    """
    data = _Bytes(payload)
    form = data.number()
    if form not in {_FORM, _FORM_WITH_ORIGIN}:
        raise StateCorrupt("a stored value is not in a form that this version of agex knows")
    try:
        origin = data.take(data.number()).decode() if form == _FORM_WITH_ORIGIN else ""
        has_code = form == _FORM_WITH_ORIGIN and bool(data.number())
        names = tuple([data.take(data.number()).decode() for _ in range(data.number())])
    except UnicodeDecodeError:
        raise StateCorrupt("a stored value's recipe holds a name that is not text") from None
    length, count = data.number(), data.number()
    parts = tuple([_part(data, length) for _ in range(count)])
    data.end()
    if not parts:
        raise StateCorrupt("a stored value's recipe has no parts")
    return Recipe(names, parts, origin, has_code)


def _part(data: _Bytes, length: int) -> bytes | tuple[int, tuple[bytes, ...]]:
    size, in_chunks = divmod(data.number(), 2)
    return (size, tuple(data.blocks(size, length))) if in_chunks else data.take(size)


def _joined(size: int, addresses: tuple[bytes, ...], read: Reader) -> bytearray:
    """Read the blocks of a part into memory that its arrays can write to."""
    out = bytearray()
    for n, address in enumerate(addresses):
        block = read(address)
        if len(block) != min(BLOCK, size - n * BLOCK):
            raise StateCorrupt(
                f"the chunk {address.hex()} is {len(block)} bytes long, which is not its length"
            )
        out += block
    return out
