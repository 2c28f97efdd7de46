"""Guest code does exactly what CPython does, or is refused by name: a corpus, one file to a family of syntax.

A snippet begins with ``# --- name``; behind the name may stand ``since: 3.12`` (and ``until: 3.12``) for
the versions that know its syntax, and ``refused: why`` for what the sandbox does not run on purpose. A
refused snippet is never run without the sandbox; what it may print first is ``before``.
"""

from __future__ import annotations

import gc
import re
import sys
import warnings
import weakref
from dataclasses import dataclass
from pathlib import Path

import pytest
from differential import twin

from agex.sandbox import Policy, Sandbox

HERE = Path(__file__).parent / "differential"
HEAD = re.compile(
    r"# --- (?P<name>.+?)"
    r"(?:\s+since: (?P<since>\d+\.\d+))?(?:\s+until: (?P<until>\d+\.\d+))?(?:\s+refused: (?P<refused>.+))?"
)


@dataclass(frozen=True)
class Snippet:
    family: str
    name: str
    source: str
    since: tuple[int, ...]
    until: tuple[int, ...]
    refused: str | None

    @property
    def applies(self) -> bool:
        """Whether this interpreter knows the syntax."""
        return self.since <= sys.version_info[:2] <= self.until


def _version(text: str | None, otherwise: str) -> tuple[int, ...]:
    return tuple(int(part) for part in (text or otherwise).split("."))


def snippets(path: Path) -> list[Snippet]:
    found: list[Snippet] = []
    for part in re.split(r"^(?=# --- )", path.read_text("utf-8"), flags=re.MULTILINE):
        head, _, source = part.partition("\n")
        if not head:
            continue
        fields = HEAD.fullmatch(head)
        assert fields is not None, f"{path.name}: not a head of a snippet: {head!r}"
        found.append(
            Snippet(
                path.stem,
                fields["name"],
                source,
                _version(fields["since"], "3.11"),
                _version(fields["until"], "3.99"),
                fields["refused"],
            )
        )
    return found


SNIPPETS = [snippet for path in sorted((HERE / "snippets").glob("*.txt")) for snippet in snippets(path)]
STRICT = Sandbox(Policy.default(strict=True), limits=twin.SANDBOX.limits)
EQUAL = [s for s in SNIPPETS if s.applies and s.refused is None]
REFUSED = [s for s in SNIPPETS if s.applies and s.refused is not None]


def _name(snippet: Snippet) -> str:
    return f"{snippet.family}: {snippet.name}"


@pytest.mark.parametrize("snippet", EQUAL, ids=_name)
def test_a_snippet_does_what_it_does_in_cpython(snippet: Snippet) -> None:
    expected = twin.run_native(snippet.source)
    actual, _ = twin.run_guest(snippet.source)

    assert str(actual) == str(expected)
    assert actual == expected


@pytest.mark.parametrize("snippet", EQUAL, ids=_name)
def test_a_snippet_does_the_same_where_the_policy_is_strict(snippet: Snippet) -> None:
    actual, _ = twin.run_guest(snippet.source, STRICT)

    assert actual == twin.run_native(snippet.source)


@pytest.mark.parametrize("snippet", REFUSED, ids=_name)
def test_what_is_refused_is_refused_with_its_line_and_what_to_do(snippet: Snippet) -> None:
    outcome, refusal = twin.run_guest(snippet.source)

    assert refusal is not None
    assert refusal.names_a_line, refusal.traceback
    assert refusal.says_what_to_do, refusal.message
    assert outcome.stdout in {"", "before\n"}


@pytest.mark.parametrize("sandbox", [twin.SANDBOX, STRICT], ids=["default", "strict"])
def test_no_session_outlives_its_program(sandbox: Sandbox) -> None:
    kept: list[tuple[str, weakref.ref[object]]] = []
    for snippet in EQUAL:
        session = sandbox.session()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session.run(snippet.source)
        kept.append((_name(snippet), weakref.ref(session)))
    del session
    gc.collect()

    assert [name for name, held in kept if held() is not None] == []


def test_no_two_snippets_share_a_name() -> None:
    names = [_name(snippet) for snippet in SNIPPETS]

    assert [name for name in set(names) if names.count(name) > 1] == []


def test_the_corpus_covers_the_families_of_the_language() -> None:
    assert len(SNIPPETS) >= 900
    assert len({snippet.family for snippet in SNIPPETS}) >= 35
