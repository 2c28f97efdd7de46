import pytest

from agex.contract.body import require_empty_body
from agex.errors import DefinitionError


def ellipsis_only(x: int) -> int: ...


def pass_only(x: int) -> int:
    pass


def docstring_only(x: int) -> int:
    """Double x."""


def docstring_and_ellipsis(x: int) -> int:
    """Double x."""


def docstring_and_pass(x: int) -> int:
    """Double x."""
    pass  # noqa: PIE790


async def async_empty(x: int) -> int:
    """Double x."""


def not_implemented(x: int) -> int:
    raise NotImplementedError


def not_implemented_called(x: int) -> int:
    """Double x."""
    raise NotImplementedError()  # noqa: RSE102


def not_implemented_with_a_text(x: int) -> int:
    """Double x."""
    raise NotImplementedError("the model writes it")


async def async_not_implemented(x: int) -> int:
    """Double x."""
    raise NotImplementedError


EMPTY = [
    ellipsis_only, pass_only, docstring_only, docstring_and_ellipsis, docstring_and_pass, async_empty,
    not_implemented, not_implemented_called, not_implemented_with_a_text, async_not_implemented,
]  # fmt: skip


@pytest.mark.parametrize("function", EMPTY, ids=lambda function: function.__name__)
def test_a_docstring_a_pass_an_ellipsis_and_a_not_implemented_error_are_an_empty_body(function):
    assert require_empty_body(function) is function


@pytest.mark.parametrize("body", ["...", "raise NotImplementedError", "raise NotImplementedError('no')"])
def test_a_function_without_source_is_told_by_its_code(body):
    assert require_empty_body(without_source(f"def f(x): {body}")).__name__ == "f"


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError",
        "raise NotImplementedError(x)",
        "raise NotImplementedError from ValueError()",
        "raise NotImplemented",
        "x; raise NotImplementedError",
        "raise NotImplementedError('a', 'b')",
    ],
)
def test_any_other_error_is_a_body(body):
    with pytest.raises(DefinitionError, match="must be empty"):
        require_empty_body(without_source(f"def f(x): {body}"))


def returns(x):
    return x


def returns_none(x):
    return None


def raises(x):
    raise ValueError


def yields():
    yield


def todo(x):
    """Doc."""
    y = x
    del y


async def awaits(x):
    await x


@pytest.mark.parametrize("function", [returns, returns_none, raises, yields, todo, awaits])
def test_any_statement_makes_the_body_not_empty(function):
    with pytest.raises(DefinitionError, match=f"the body of task '{function.__name__}' must be empty"):
        require_empty_body(function)


def test_the_error_shows_the_statement_and_the_right_form():
    with pytest.raises(DefinitionError) as caught:
        require_empty_body(returns)
    assert "found code: `return x`" in str(caught.value)
    assert "Leave a docstring, `pass`, `...` or `raise NotImplementedError`" in str(caught.value)


def without_source(source, name="f"):
    namespace = {}
    exec(compile(source, "<no source>", "exec"), namespace)
    return namespace[name]


@pytest.mark.parametrize(
    "source",
    ["def f(): ...", "def f(x): 'doc'", "def f(a, *b, c=1, **d): 'doc'; pass", "async def f(x): 'doc'; ..."],
)
def test_without_source_the_code_object_shows_an_empty_body(source):
    function = without_source(source)
    assert require_empty_body(function) is function


@pytest.mark.parametrize(
    "source",
    ["def f(): return 1", "def f(x): x", "def f(): g()", "async def f(x): await x", "def f(): yield"],
)
def test_without_source_the_code_object_shows_a_body(source):
    with pytest.raises(DefinitionError, match="must be empty"):
        require_empty_body(without_source(source))


def test_a_function_inside_a_function_may_use_its_names_in_annotations():
    class Out: ...

    def inner(x: Out) -> Out:
        """Doc."""

    assert require_empty_body(inner) is inner


@pytest.mark.parametrize("thing", [lambda x: None, len, int, 3, staticmethod(ellipsis_only)])
def test_what_is_no_plain_function_is_refused(thing):
    with pytest.raises(DefinitionError, match="def name"):
        require_empty_body(thing)
