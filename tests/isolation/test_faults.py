"""Errors across the border."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agex.errors import EvalError, SandboxAttributeError, TaskFail
from agex.isolation.wire.error_codec import ProtocolError, pack_error, unpack_error


def crossed(error: BaseException) -> Exception:
    return unpack_error(json.loads(json.dumps(pack_error(error, str(error)))), lambda name: None)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        KeyError("k", 2),
        OSError(2, "No such file", "a.txt"),
        SandboxAttributeError("no"),
        TaskFail("gave up"),
        ZeroDivisionError(),
        StopIteration(3),
    ],
)
def test_a_known_error_comes_out_as_itself(error):
    found = crossed(error)
    assert (type(found), found.args, str(found)) == (type(error), error.args, str(error))


def test_a_syntax_error_keeps_where_it_is():
    with pytest.raises(SyntaxError) as caught:
        compile("x = = 1", "<a>", "exec")
    found = crossed(caught.value)
    assert (found.lineno, found.offset, found.filename) == (1, 5, "<a>")


def test_an_unknown_class_comes_out_under_its_nearest_known_base():
    class Mine(KeyError):
        pass

    found = crossed(Mine("k"))
    assert (type(found).__name__, isinstance(found, KeyError)) == ("Mine", True)


def test_a_resource_error_keeps_what_is_behind_it():
    error = EvalError("TimeoutError: late")
    error.__cause__ = TimeoutError("late")
    assert repr(crossed(error).__cause__) == "TimeoutError('late')"


def test_what_is_no_plain_argument_becomes_text():
    assert crossed(ValueError(object)).args == ("<class 'object'>",)


def test_exceptions_that_end_a_process_come_out_as_plain_errors():
    found = crossed(SystemExit(3))
    assert (type(found).__mro__[1], type(found).__name__) == (Exception, "SystemExit")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "mro": st.lists(st.sampled_from(["builtins.OSError", "agex.errors.LLMFail", "a.B", "x", ""]))
            | _JSON,
            "args": _JSON,
            "text": _JSON,
            "fields": _JSON,
            "cause": _JSON,
        },
    )
    | _JSON
)
def test_any_description_is_an_error_or_refused(packed):
    with contextlib.suppress(ProtocolError):
        assert isinstance(unpack_error(packed, lambda name: None), Exception)
