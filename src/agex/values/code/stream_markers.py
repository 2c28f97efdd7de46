"""Markers that the encoder puts into a stream, and that `agex.values.type_registry` takes apart."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CapturedNamespace",
    "ClassContent",
    "CodeReference",
    "EarlyNamespaces",
    "FirstClasses",
    "NamespaceContent",
    "NamespaceList",
]


class CodeReference:
    """A function, class, module or host object, for a place that unwraps handles."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


class NamespaceList:
    """The contents of the namespaces of a group; they are encoded last."""


class EarlyNamespaces:
    """The contents that namespaces need before the first value is made: hashes of guest classes read them."""


class FirstClasses:
    """The guest classes of a group: they are made before all else, and then filled."""


class ClassContent:
    """The content of one class: the last one, or the *early* one before the next class is made."""

    def __init__(self, cls: type, *, early: bool = False) -> None:
        self.cls = cls
        self.early = early


class NamespaceContent:
    """The content of one namespace."""

    def __init__(self, *content: Any) -> None:
        self.content = content


class CapturedNamespace:
    """The globals that functions of one namespace read, by name."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.globals = namespace
        self.names: set[str] = set()
        self.done: set[str] = set()
