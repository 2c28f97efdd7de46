"""The corpus of everyday Python: snippets by library, and what runs them in the sandbox.

A snippet begins with ``# --- name``. One before the first, ``# === prelude``, stands before each of its file.
`LEDGER` names the snippets that the sandbox refuses on purpose: why, and what to write instead.
"""

from __future__ import annotations

import importlib
import re
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

from everyday.native import Outcome, plain

from agex import connect_fs
from agex.errors import SandboxError
from agex.isolation import Executor
from agex.sandbox import Limits, Policy, Sandbox

HERE = Path(__file__).parent

REGISTERED = {
    "stdlib_text": (),
    "stdlib_data": (),
    "stdlib_system": (),
    "pandas": ("pandas", "matplotlib.pyplot"),
    "numpy": ("numpy",),
    "matplotlib": ("matplotlib.pyplot",),
    "sklearn": ("sklearn", "pandas", "matplotlib.pyplot"),
    "polars": ("polars", "pandas"),
    "seaborn": ("seaborn", "pandas", "matplotlib.pyplot"),
    "networkx": ("networkx", "pandas", "matplotlib.pyplot"),
    "openpyxl": ("openpyxl", "pandas"),
}
"""The modules that a user registers, without options, for the snippets of a file."""


@dataclass(frozen=True)
class Snippet:
    """A short program as a tutorial shows it."""

    library: str
    name: str
    source: str

    @property
    def id(self) -> str:
        """The name by which the ledger knows it."""
        return f"{self.library}: {self.name}"


def snippets() -> list[Snippet]:
    """Return all snippets, in the order of the files."""
    found: list[Snippet] = []
    for library in REGISTERED:
        prelude = ""
        for part in re.split(
            r"^(?=# (?:---|===) )", (HERE / f"{library}.txt").read_text("utf-8"), flags=re.MULTILINE
        ):
            head, _, source = part.partition("\n")
            if head == "# === prelude":
                prelude = source
            elif head:
                found.append(Snippet(library, head.removeprefix("# --- "), prelude + source))
    return found


def ledger() -> dict[str, dict[str, str]]:
    """Return the refused snippets by their names: ``why`` and ``instead``."""
    found: dict[str, dict[str, str]] = tomllib.loads((HERE / "ledger.toml").read_text("utf-8"))
    return found


def policy_of(library: str) -> Policy:
    """Return the standard set and the modules of a file."""
    policy = Policy.default()
    for name in REGISTERED[library]:
        policy.module(importlib.import_module(name))
    return policy


def run_guest(snippet: Snippet, policy: Policy) -> Outcome:
    """Run a snippet in the sandbox, with an empty workspace."""
    sandbox = Sandbox(
        policy, fs=connect_fs(type="virtual"), limits=Limits(seconds=60, output_chars=1_000_000)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = sandbox.session().run(snippet.source, "<agent>", echo=False)
    if result.error is None:
        return Outcome(plain(result.stdout))
    error = result.error
    return Outcome(
        plain(result.stdout), type(error).__name__, str(error), refused=isinstance(error, SandboxError)
    )


def run_full(snippet: Snippet, executor: Executor, policy: Policy) -> Outcome:
    """Run a snippet as full Python in a worker of a level, with an empty workspace."""
    limits = Limits(seconds=60, output_chars=1_000_000)
    session = executor.session(policy, limits, {}, files=connect_fs(type="virtual"), python="full")
    try:
        session.run("import warnings\nwarnings.simplefilter('ignore')\ndel warnings")
        result = session.run(snippet.source, "<agent>", echo=False)
    finally:
        session.close()
    if result.error is None:
        return Outcome(plain(result.stdout))
    name = type(result.error).__name__
    return Outcome(plain(result.stdout), name, str(result.error), refused=isinstance(result.error, OSError))


LIBRARIES = {
    "Python": ("stdlib_text", "stdlib_data", "stdlib_system"),
    "pandas": ("pandas",),
    "numpy": ("numpy",),
    "matplotlib": ("matplotlib",),
    "scikit-learn": ("sklearn",),
    "polars": ("polars",),
    "seaborn": ("seaborn",),
    "networkx": ("networkx",),
    "openpyxl": ("openpyxl",),
}
"""The rows of the table, and the files of each."""


def table() -> str:
    """Return the table of docs/libraries.md: how many snippets run, and what to write in place of the others."""
    found, refused = snippets(), ledger()
    lines = ["| | Snippets | Run | Not run | Why | Instead |", "|---|---|---|---|---|---|"]
    for title, files in LIBRARIES.items():
        known = [each for each in found if each.library in files]
        out = [each for each in known if each.id in refused]
        counts = f"{len(known)} | {len(known) - len(out)}"
        for at, each in enumerate(out or [None]):
            row = f"{title} | {counts}" if at == 0 else " | | "
            said = {"why": "", "instead": ""} if each is None else refused[each.id]
            lines.append(
                f"| {row} | {'' if each is None else each.name} | {said['why']} | {said['instead']} |"
            )
    lines.append(f"| all | {len(found)} | {len(found) - len(refused)} | | | |")
    return "\n".join(re.sub(r" +", " ", line) for line in lines)
