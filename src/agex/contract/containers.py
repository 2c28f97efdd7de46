"""Checks of containers: every element, by the container's real contents."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from annotated_types import MaxLen, MinLen

from agex.contract.mismatch import Mismatch, Tally, item
from agex.contract.preview import short_repr
from agex.contract.real_types import is_a, is_subclass, real_items, real_iter, real_len
from agex.contract.walk import Check, Walk, attempt, changed, once, parts

__all__ = ["elements_check", "mapping_check", "size_check", "tuple_check"]


def elements_check(cls: type, element: Check, expected: str) -> Check:
    """Make the check of a collection of one kind of element, e.g. ``list[int]``.

    An iterator or a generator can be read only once, so only its class is checked.
    """

    def check(value: Any, walk: Walk) -> Any:
        kind = type(value)
        if kind is not cls and not is_a(value, cls):
            raise Mismatch.of(expected, value)
        if kind is not list and (not is_a(value, Collection) or is_a(value, Iterator)):
            return value
        before = value if kind is list else list(real_iter(value))
        tally = Tally()
        after = parts(before, element, walk, tally, _step(value, before))
        tally.settle()
        return _rebuilt(value, after, cls, expected) if changed(before, after) else value

    return once(check)


def _step(value: Any, elements: list[Any]) -> Callable[[int], str]:
    """Return how the way to an element is written: by index, or by itself in a set."""
    if is_a(value, AbstractSet):
        return lambda index: f"{{{short_repr(elements[index], 40)}}}"
    return item


def _rebuilt(value: Any, after: list[Any], cls: type, expected: str) -> Any:
    """Build the collection anew from its parts, as the plain builtin where it was derived."""
    if is_subclass(type(value), deque):
        return deque(after, value.maxlen)
    for base in (list, tuple, set, frozenset):
        if is_subclass(type(value), base) and is_subclass(base, cls) | is_a(base(), cls):
            return _build(base, after, expected)
    raise Mismatch.of(f"{expected} whose elements already fit", value)


def _build(base: Callable[[Any], Any], after: list[Any], expected: str) -> Any:
    try:
        return base(after)
    except TypeError as error:
        raise Mismatch.of(f"{expected}, but it cannot be built: {error}") from error


def tuple_check(before: list[Check], middle: Check | None, after: list[Check], expected: str) -> Check:
    """Make the check of a tuple: the first elements, any number of *middle* ones, the last."""
    fixed = len(before) + len(after)

    def check(value: Any, walk: Walk) -> Any:
        if not is_subclass(type(value), tuple):
            raise Mismatch.of(expected, value)
        items = list(tuple.__iter__(value))
        spare = len(items) - fixed
        if spare < 0 or (spare and middle is None):
            raise Mismatch.of(f"{expected} ({fixed} elements), got {len(items)} elements")
        checks = [*before, *([middle] * spare if middle else ()), *after]
        tally = Tally()
        results = []
        for index, (each, part) in enumerate(zip(checks, items, strict=True)):
            results.append(attempt(each, part, walk, tally, item(index)))
        tally.settle()
        return tuple(results) if changed(items, results) else value

    return once(check)


def mapping_check(cls: type, key: Check, element: Check, expected: str) -> Check:
    """Make the check of a mapping: every key and every value."""

    def check(value: Any, walk: Walk) -> Any:
        if type(value) is not cls and not is_a(value, cls):
            raise Mismatch.of(expected, value)
        items = real_items(value)
        keys, values = [k for k, _ in items], [v for _, v in items]
        tally = Tally()
        new_keys = parts(keys, key, walk, tally, lambda i: f" key {short_repr(keys[i], 40)}")
        new_values = parts(values, element, walk, tally, lambda i: item(keys[i]))
        tally.settle()
        if not changed(keys, new_keys) and not changed(values, new_values):
            return value
        return _rebuilt_mapping(value, list(zip(new_keys, new_values, strict=True)), expected)

    return once(check)


def _rebuilt_mapping(value: Any, items: list[tuple[Any, Any]], expected: str) -> Any:
    if is_subclass(type(value), defaultdict):
        return defaultdict(value.default_factory, items)
    if is_subclass(type(value), Counter):
        return Counter(dict(items))
    if is_subclass(type(value), OrderedDict):
        return OrderedDict(items)
    if is_subclass(type(value), dict):
        return _build(dict, items, expected)
    raise Mismatch.of(f"{expected} whose items already fit", value)


def size_check(bound: MinLen | MaxLen) -> Check:
    """Make the check of a length, counted past any override of ``__len__``."""
    least, most = (bound.min_length, None) if isinstance(bound, MinLen) else (0, bound.max_length)
    expected = f"expected length {f'>= {least}' if most is None else f'<= {most}'}"

    def check(value: Any, walk: Walk) -> Any:
        size = real_len(value)
        if size < least or (most is not None and size > most):
            raise Mismatch.of(f"{expected}, got length {size}")
        return value

    return check
