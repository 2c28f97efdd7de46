"""Everyday programs do in the sandbox what they do in CPython; those that are refused are in a ledger."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Iterator

import pytest
from everyday import corpus
from everyday.native import Native

SNIPPETS = corpus.snippets()
LEDGER = corpus.ledger()
EQUAL = [each for each in SNIPPETS if each.id not in LEDGER]
REFUSED = [each for each in SNIPPETS if each.id in LEDGER]


@pytest.fixture(scope="module")
def natives() -> Iterator[dict[str, Native]]:
    """Return the processes that run snippets under plain CPython, by library."""
    made: dict[str, Native] = {}
    yield made
    for each in made.values():
        each.close()


@pytest.fixture(autouse=True)
def _figures() -> Iterator[None]:
    """Close the figures that a snippet leaves open, as the end of its process does."""
    yield
    importlib.import_module("matplotlib.pyplot").close("all")


def _require(library: str) -> None:
    for name in corpus.REGISTERED[library]:
        pytest.importorskip(name, reason=f"{name} is not installed: its snippets cannot be tried")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the snippets run natively in forks")
@pytest.mark.parametrize("snippet", EQUAL, ids=lambda snippet: snippet.id)
def test_a_snippet_does_what_it_does_in_cpython(snippet: corpus.Snippet, natives: dict[str, Native]) -> None:
    _require(snippet.library)
    if snippet.library not in natives:
        natives[snippet.library] = Native(corpus.REGISTERED[snippet.library])
    expected = natives[snippet.library].run(snippet.source)

    actual = corpus.run_guest(snippet, corpus.policy_of(snippet.library))

    assert actual.message == ""
    assert actual.seen == expected.seen
    assert expected.error == ""


@pytest.mark.parametrize("snippet", REFUSED, ids=lambda snippet: snippet.id)
def test_a_snippet_in_the_ledger_is_refused_and_not_run_halfway_with_another_result(
    snippet: corpus.Snippet,
) -> None:
    _require(snippet.library)
    outcome = corpus.run_guest(snippet, corpus.policy_of(snippet.library))

    assert outcome.refused, outcome


def test_each_refusal_says_why_and_what_to_write_instead() -> None:
    assert LEDGER.keys() <= {each.id for each in SNIPPETS}
    assert [name for name, said in LEDGER.items() if not (said["why"] and said["instead"])] == []


def test_at_least_97_of_100_snippets_run() -> None:
    assert len(SNIPPETS) >= 400
    assert len(EQUAL) / len(SNIPPETS) >= 0.97


def test_no_two_snippets_share_a_name() -> None:
    assert [name for name, count in Counter(each.id for each in SNIPPETS).items() if count > 1] == []


def test_the_table_in_the_docs_is_that_of_the_corpus() -> None:
    assert corpus.table() in (corpus.HERE.parents[2] / "docs" / "libraries.md").read_text("utf-8")
