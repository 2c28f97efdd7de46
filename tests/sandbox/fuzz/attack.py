"""One hostile program: run it, and say what it came by or changed."""

from __future__ import annotations

import re
import string
import sys
import warnings
from typing import Any

from fuzz import host, oracle

from agex.sandbox import Limits, Policy, Result, Sandbox

# The first protocol class of a process makes agex add two names to a list of typing; that is no guest's doing.
# Nor are the functions that take the place of some of these modules when they are first imported.
Sandbox().exec(
    "import asyncio, calendar, csv, difflib, pprint, random, typing\nclass P(typing.Protocol): pass"
)
# From Python 3.14 on, the first template of a process compiles the pattern of its class.
string.Template("").substitute()

# A browser tab has no such limit on memory, and refuses one.
LIMITS = Limits(seconds=2, memory_mb=None if sys.platform == "emscripten" else 1_000)

_INTERNAL = re.compile(
    r"agex\.sandbox\.\w+|\b(?:check|store|own|ok|type|stop|trip|caught|pattern|value|case\d+)!"
)


class Attack:
    """What a program did.

    Args:
        source: the program.
        prelude: what runs before it, in the same session; a program of its own, so that it is compiled once.
        policy: what it is run under; the host's own if not given.
        names: further variables.
    """

    def __init__(self, source: str, policy: Policy | None = None, *, prelude: str = "", **names: Any) -> None:
        streams = sys.stdout, sys.stderr
        live = host.objects()
        before = host.snapshot(live)
        sandbox = Sandbox(policy or host.policy(), limits=LIMITS)
        session = sandbox.session({**live, **names})
        self.result: Result | None = None
        self.findings: list[str] = []
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # what a program does with its coroutines and strings is its own affair
            try:
                if prelude:
                    session.run(prelude)
                self.result = session.run(source)
            except BaseException as escaped:  # noqa: BLE001 - anything that leaves a run is what is looked for
                self.findings.append(f"{type(escaped).__name__} escaped to the host")
        held = self.result
        if held is not None:
            look = oracle.Oracle(
                session,
                secret=host.SECRET,
                private=(host.CANARY, host.Canary, host._private_function),
                live=live,
            )
            self.findings += look.findings(held.namespace, held.value, held.stdout, held.echo, held.error)
            self.findings += [f"the text {held.traceback!r}"] * (host.SECRET in held.traceback)
        self.findings += [f"{name} of the host changed" for name in host.changes(before, host.snapshot(live))]
        sys.stdout, sys.stderr = streams  # the next program has a host of its own

    @property
    def internals(self) -> list[str]:
        """Names of the sandbox's own parts that the guest could print: no way out, but none of its business."""
        printed = (
            "" if self.result is None else f"{self.result.stdout}{self.result.echo}{self.result.traceback}"
        )
        return sorted(set(_INTERNAL.findall(printed)))
