"""Installation of the process-wide patches, and of the audit hook after them."""

from __future__ import annotations

from agex.sandbox.classes import generic_classes
from agex.sandbox.patches import (
    contextlib,
    copy,
    enum,
    methods,
    stdlib_caches,
    threading,
    typing,
)
from agex.sandbox.runtime import audit_hook

__all__ = ["install"]


class _Installed:
    """Whether this process has the patches."""

    done = False


def install() -> None:
    """Patch the standard library and add the audit hook, once a process."""
    if _Installed.done:
        return
    for each in (stdlib_caches, copy, enum, threading, typing, generic_classes, contextlib, methods):
        each.install()
    audit_hook.install(typing.check)
    _Installed.done = True
