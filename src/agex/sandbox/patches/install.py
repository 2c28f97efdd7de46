"""Installation of the process-wide patches, and of the audit hook after them."""

from __future__ import annotations

import types

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
from agex.sandbox.runtime import audit_hook, evaluated_code
from agex.sandbox.runtime.membrane import Membrane

__all__ = ["install"]


def _check_code(guards: Membrane, code: object, frame: types.FrameType) -> None:
    if typing.is_evaluated_in(frame):
        typing.check(guards, frame)
    else:
        evaluated_code.check(code, frame)


class _Installed:
    """Whether this process has the patches."""

    done = False


def install() -> None:
    """Patch the standard library and add the audit hook, once a process."""
    if _Installed.done:
        return
    for each in (stdlib_caches, copy, enum, threading, typing, generic_classes, contextlib, methods):
        each.install()
    audit_hook.install(_check_code)
    _Installed.done = True
