import doctest

import pytest

from agex.contract import describe_failure, doc_examples, given_examples, outcome_matches
from agex.errors import DefinitionError


def sources(doc, name="f"):
    return [example.source for example in doc_examples(doc, name)]


# --- docstrings ----------------------------------------------------------------------------------


def test_a_call_of_the_task_is_an_example():
    (example,) = doc_examples("Double.\n\n>>> f(2, k='a')\n4\n", "f")
    assert (example.source, example.expected_text) == ("f(2, k='a')", "4")
    assert example.arguments() == ((2,), {"k": "a"})


def test_an_awaited_call_is_an_example_of_an_async_task():
    assert sources(">>> await f(2)\n4") == ["f(2)"]


@pytest.mark.parametrize(
    "doc",
    [
        ">>> x = f(2)",
        ">>> f(2) + f(3)\n9",
        ">>> [f(x) for x in (1, 2)]\n[1, 2]",
        ">>> (lambda: f(2))()\n4",
        ">>> map(f, [1])\n4",
        ">>> print(f, f(2))\n4",
        ">>> np.round(f(2))\n4",
        ">>> other(2)\n4",
        ">>> o.f(2)\n4",
        ">>> f(f(2))\n16",
        ">>> f(x)\n4",
        ">>> f(np.zeros(2))\n4",
        ">>> import math",
        ">>> f(2)  # doctest: +SKIP\n4",
        ">>> f(2)",
        ">>> f(2\n4",
        "nothing here",
        "",
        None,
    ],
)
def test_what_does_not_call_the_task_once_with_builtins_is_left_alone(doc):
    assert doc_examples(doc, "f") == ()


@pytest.mark.parametrize(
    ("source", "value", "seen"),
    [
        ("sorted(f(2))", [2, 1], [1, 2]),
        ("f(2) == 4", 4, True),
        ("f(2)[0]", [4], 4),
        ("round(f(2), 1)", 1.26, 1.3),
        ("f(2).title()", "ab", "Ab"),
        ("sorted(f(2), key=lambda pair: -pair[0])", [(1,), (2,)], [(2,), (1,)]),
        ("round(await f(2), 1)", 1.26, 1.3),
    ],
)
def test_an_expression_around_a_call_is_an_example(source, value, seen):
    (example,) = doc_examples(f">>> {source}\n{seen!r}\n", "f")
    assert (example.source, example.arguments()) == (source, ((2,), {}))
    assert example.seen(value) == seen
    assert outcome_matches(example, value=example.seen(value))


@pytest.mark.parametrize("source", ["f(range(3))", "f([x * 2 for x in range(3)])", "f(key=lambda a: -a)"])
def test_builtins_and_names_bound_inside_an_argument_may_be_used(source):
    assert sources(f">>> {source}\n4") == [source]


def test_a_malformed_docstring_keeps_its_readable_examples():
    doc = "    >>> f('')\n    ''\n    >>> f(\"a\nb\")\n    'x'\n    >>> f('c')\n    'c'\n"
    with pytest.raises(ValueError, match="inconsistent leading whitespace"):
        doctest.DocTestParser().get_examples(doc)
    assert sources(doc) == ["f('')", "f('c')"]


@pytest.mark.parametrize("doc", [">>>f(2)\n4", ">>> f(2)\n    ... 4\n4", ">>> f(1) # doctest: +NOPE\n1"])
def test_a_malformed_docstring_never_raises(doc):
    assert doc_examples(doc, "f") == ()


def doc_example(want, directive=""):
    (example,) = doc_examples(f">>> f(2){directive}\n{want}\n", "f")
    return example


@pytest.mark.parametrize(
    ("want", "value"),
    [
        ("4", 4),
        ("4.0", 4),
        ("4.50", 4.5),
        ('"a"', "a"),
        ("['a', \"b\"]", ["a", "b"]),
        ("{'b': 1, 'a': 2}", {"a": 2, "b": 1}),
        ("{2, 1}", {1, 2}),
        ("None", None),
        ("( 1,2 )", (1, 2)),
    ],
)
def test_a_value_matches_by_its_text_or_as_plain_data(want, value):
    assert outcome_matches(doc_example(want), value=value)


@pytest.mark.parametrize(
    ("want", "value"),
    [("4", 5), ("True", 1), ("1", True), ("[1]", (1,)), ("'4'", 4), ("0.3", 0.1 + 0.2), ("[1, 2]", [1, 3])],
)
def test_another_value_does_not_match(want, value):
    assert not outcome_matches(doc_example(want), value=value)


def test_an_object_matches_by_its_repr_alone():
    class AlwaysEqual:
        def __eq__(self, other):
            return True

        __hash__ = None

    assert outcome_matches(doc_example("<thing>"), value=AlwaysEqual(), value_repr="<thing>")
    assert not outcome_matches(doc_example("4"), value=AlwaysEqual(), value_repr="<thing>")


def test_doctest_options_hold():
    assert outcome_matches(doc_example("[0, ..., 9]", "  # doctest: +ELLIPSIS"), value=list(range(10)))
    assert not outcome_matches(doc_example("[0, ..., 9]"), value=list(range(10)))
    spaced = doc_example("Point(x=1,\n      y=2)", "  # doctest: +NORMALIZE_WHITESPACE")
    assert outcome_matches(spaced, value=object(), value_repr="Point(x=1, y=2)")


TRACEBACK = "Traceback (most recent call last):\n    ...\nValueError: too small"


@pytest.mark.parametrize(
    ("error", "matches"),
    [
        (ValueError("too small"), True),
        (UnicodeError("too small"), True),
        (ValueError("too big"), False),
        (TypeError("too small"), False),
        (None, False),
    ],
)
def test_an_expected_exception_matches_by_type_and_message(error, matches):
    example = doc_example(TRACEBACK)
    assert example.expected_text == "ValueError: too small"
    assert outcome_matches(example, error=error) is matches


def test_an_exceptions_message_may_be_ignored():
    example = doc_example(TRACEBACK, "  # doctest: +IGNORE_EXCEPTION_DETAIL")
    assert outcome_matches(example, error=ValueError("whatever"))


def test_an_error_never_matches_a_value():
    assert not outcome_matches(doc_example("None"), value=None, error=ValueError("None"))


# --- given objects -------------------------------------------------------------------------------


def test_a_given_example_shows_its_call():
    (example,) = given_examples([((([1, 2],), {"base": 10}), "x")], "f")
    assert (example.source, example.expected_text) == ("f([1, 2], base=10)", "'x'")


def test_the_arguments_of_a_given_example_are_fresh_each_time():
    (example,) = given_examples([((([1],), {}), 1)])
    args, _ = example.arguments()
    args[0].append(2)
    assert example.arguments() == (([1],), {})


@pytest.mark.parametrize("wrong", [3, (2, 4), ((2,), 4), (((2,), {}),), (((2,), {1: 2}), 4), ((2, {}), 4)])
def test_another_form_is_a_definition_error_that_shows_the_right_one(wrong):
    with pytest.raises(DefinitionError, match=r"write examples=\[\(\(\(2,\), \{'base': 10\}\), 4\)\]"):
        given_examples([wrong])


def test_a_given_example_matches_the_same_value_only():
    (example,) = given_examples([(((2,), {}), [1.0, float("nan")])])
    assert outcome_matches(example, value=[1.0, float("nan")])
    assert not outcome_matches(example, value=[1.1, float("nan")])
    assert not outcome_matches(example, error=ValueError("x"))


def test_an_example_may_expect_none():
    (example,) = given_examples([(((2,), {}), None)])
    assert outcome_matches(example, value=None)
    assert not outcome_matches(example, value=0)


def test_a_failure_shows_call_expected_and_got():
    assert describe_failure(doc_example("4"), "5") == (
        "example failed\n  call:     f(2)\n  expected: 4\n  got:      5"
    )
