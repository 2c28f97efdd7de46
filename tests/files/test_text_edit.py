"""A passage is replaced where it stands, exactly or by its words, or the model is told where to look."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agex.files.text_edit import PassageError, replaced

CODE = "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g(x):\n    return 2\n"

EDITS = {
    "exactly": ("if x:", "if not x:", CODE.replace("if x:", "if not x:")),
    "several lines": (
        "    if x:\n        return 1\n",
        "    pass\n",
        "def f(x):\n    pass\n    return 2\n\n\ndef g(x):\n    return 2\n",
    ),
    "with less indentation": (
        "if x:\n    return 1",
        "if y:\n    return 3",
        CODE.replace("x:\n        return 1", "y:\n        return 3"),
    ),
    "with more indentation": (
        "        if x:\n            return 1",
        "        if y:\n            return 3",
        CODE.replace("x:\n        return 1", "y:\n        return 3"),
    ),
    "with white space at the ends": (
        "if x:   \n        return 1  ",
        "    return 3",
        CODE.replace("    if x:\n        return 1", "        return 3"),
    ),
    "to nothing": ("        return 1\n", "", CODE.replace("        return 1\n", "")),
    "to nothing, by its words": ("   return 1 ", "", CODE.replace("        return 1\n", "")),
}  # fmt: skip


@pytest.mark.parametrize(("search", "replace", "expected"), EDITS.values(), ids=EDITS)
def test_a_passage_is_replaced(search, replace, expected):
    assert replaced(CODE, search, replace) == expected


def test_a_passage_that_stands_twice_is_refused_with_its_lines():
    with pytest.raises(PassageError, match=r"2 times, at lines 4, 8; give more of the lines"):
        replaced(CODE, "return 2", "return 3")


def test_a_passage_that_fits_twice_by_its_words_is_refused():
    with pytest.raises(PassageError, match="2 times, at lines 4, 8"):
        replaced(CODE, "  return  2 ", "return 3")


def test_a_missing_passage_is_answered_with_the_nearest_lines():
    with pytest.raises(
        PassageError, match=r"no such passage.*The nearest lines are:\n    1  def f\(x\):\n    7  def g\(x\):"
    ) as error:
        replaced(CODE, "def g(y):\n    return 5", "")
    assert "Nothing was changed" in str(error.value)


def test_nothing_is_found_in_a_text_without_any_line_like_it():
    with pytest.raises(PassageError, match="No line there is like its first"):
        replaced("alpha\n", "zzzzzzzz", "")


def test_an_empty_passage_is_refused():
    with pytest.raises(PassageError, match="use write_file"):
        replaced(CODE, " \n", "x")


@given(
    st.text(alphabet="ab \n", max_size=30),
    st.text(alphabet="ab \n", min_size=1, max_size=6),
    st.text(max_size=5),
)
def test_an_exact_passage_that_stands_once_is_replaced_as_str_does(text, search, new):
    if search.strip() and text.count(search) == 1:
        assert replaced(text, search, new) == text.replace(search, new)
