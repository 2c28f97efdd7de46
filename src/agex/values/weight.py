"""How much work the hash of a decoded value is: a hash goes through shared tuples again and again.

Sixty pairs, each of the one before twice, are 300 bytes and a hash that never ends, in C code that
nothing interrupts. The encoder writes such values for whoever makes them; from another level of
isolation they are refused.
"""

from __future__ import annotations

from agex.errors import StateCorrupt
from agex.values import audit

__all__ = ["weigh"]

_HEAVIEST = 1 << 24
"""Visits of a hash: some tenths of a second."""
_TUPLES, _GETS = b"t\x85\x86\x87\x91R", b"hj"
_FEWEST = 20
"""Tuples, and references to what came before, without which nothing can double that often."""


def weigh(stream: bytes) -> None:
    """Check that nothing in a stream takes long to hash.

    Raises:
        StateCorrupt: something does.
    """
    if _count(stream, _TUPLES) >= _FEWEST and _count(stream, _GETS) >= _FEWEST:
        _walk(stream)


def _count(stream: bytes, opcodes: bytes) -> int:
    return sum(stream.count(opcode) for opcode in opcodes)


def _walk(stream: bytes) -> None:
    """Follow what each opcode does to the stack, by the weight of what lies there."""
    stack: list[int] = []
    marks: list[int] = []
    memo: list[int] = []
    at = 0
    try:
        while at < len(stream):
            opcode = stream[at]
            does = audit.DOES[opcode]
            if does == audit.PUSH:
                stack.append(1)
            elif does == audit.MEMO:
                memo.append(stack[-1])
            elif does == audit.GET:
                width = 1 if opcode == 0x68 else 4
                stack.append(memo[int.from_bytes(stream[at + 1 : at + 1 + width], "little")])
            elif does == audit.MARK:
                marks.append(len(stack))
            elif does == audit.DROP:
                del stack[marks.pop() :]
            elif does == audit.POP:
                del stack[-audit.TAKES[opcode] :]
            elif does in {audit.PAIR, audit.FEW, audit.MANY}:
                start = (
                    marks.pop() if does == audit.MANY else -2 if does == audit.PAIR else -audit.TAKES[opcode]
                )
                stack[start:] = [1 + sum(stack[start:])]
                if stack[-1] > _HEAVIEST:
                    raise StateCorrupt("a value of a worker would take too long to hash")
            at = at + audit.SIZES[opcode] if audit.SIZES[opcode] else audit.after(stream, at)
    except IndexError:
        raise StateCorrupt("a value of a worker takes what it did not put anywhere") from None
