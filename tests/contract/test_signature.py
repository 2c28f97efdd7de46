import enum
import inspect
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import BaseModel, Field

from agex.contract import ContractError, TaskSignature
from agex.errors import DefinitionError, InputError


class Point(BaseModel):
    x: int
    y: int = 0


class Color(enum.Enum):
    RED = 1


def test_it_tells_what_the_function_declares():
    async def find(text: str, limit: int = 3) -> list[str]:
        """Find words.

        Sorted.
        """

    signature = TaskSignature.of(find)
    assert (signature.name, signature.doc) == ("find", "Find words.\n\nSorted.")
    assert (signature.is_async, signature.has_return) == (True, True)
    assert signature.return_annotation == list[str]
    assert list(signature.parameters) == ["text", "limit"]


@pytest.mark.parametrize("name", ["state", "on_event", "on_token", "budget", "inputs"])
def test_a_parameter_cannot_bear_a_name_that_agex_uses(name):
    namespace: dict[str, Any] = {}
    exec(f"def f({name}): ...", namespace)
    with pytest.raises(DefinitionError, match=f"cannot have a parameter named '{name}'"):
        TaskSignature.of(namespace["f"])


# --- annotations ---------------------------------------------------------------------------------


def test_a_string_annotation_resolves_in_the_module():
    def f(p: "Point") -> "list[Point]": ...

    assert TaskSignature.of(f).return_annotation == list[Point]


def test_a_string_annotation_resolves_among_the_callers_locals():
    class Local(BaseModel):
        x: int

    def f() -> "list[Local]": ...

    assert TaskSignature.of(f, localns=locals()).return_annotation == list[Local]


def test_a_string_annotation_resolves_in_the_closure():
    class Local(BaseModel):
        x: int

    def f() -> "Local": ...

    # What the function's own code mentions is in its closure; locals are asked after it.
    assert TaskSignature.of(f, localns={"Local": Local}).check_result({"x": 1}) == Local(x=1)


def test_a_forward_reference_inside_an_annotation_resolves():
    def f() -> list["Point"]: ...

    assert TaskSignature.of(f).check_result([{"x": 1}]) == [Point(x=1)]


def test_a_class_defined_after_the_task_is_found_at_the_first_call():
    namespace: dict[str, Any] = {}
    exec("def f() -> 'Later': ...", namespace)
    signature = TaskSignature.of(namespace["f"])
    namespace["Later"] = int
    assert signature.check_result(3) == 3


def test_a_name_that_never_exists_is_a_definition_error_at_the_first_call():
    def f(x: "Missing") -> int: ...  # noqa: F821

    with pytest.raises(DefinitionError, match="parameter 'x': the annotation 'Missing' cannot be resolved"):
        TaskSignature.of(f).bind((1,), {})


@pytest.mark.parametrize("annotation", ["int +", "list[", 3, "Color.GREEN"])
def test_an_invalid_annotation_is_a_definition_error_at_decoration(annotation):
    def f(): ...

    f.__annotations__["return"] = annotation
    with pytest.raises(DefinitionError, match="task 'f', the return value"):
        TaskSignature.of(f)


# --- inputs --------------------------------------------------------------------------------------


def test_inputs_are_the_callers_own_objects():
    def f(rows: list[int], anything: object, table: dict[str, list[float]]): ...

    rows, anything, table = [1, 2], object(), {"a": [1.0, 2]}
    inputs = TaskSignature.of(f).bind((rows,), {"anything": anything, "table": table})
    assert list(inputs) == ["rows", "anything", "table"]
    assert inputs["rows"] is rows
    assert inputs["anything"] is anything
    assert inputs["table"] is table


def test_a_numpy_number_is_a_fitting_input_and_stays_what_it_is():
    def f(x: int, xs: list[float]): ...

    x, xs = np.int64(3), [np.float64(1.5)]
    inputs = TaskSignature.of(f).bind((x, xs), {})
    assert inputs["x"] is x
    assert inputs["xs"] is xs


def test_a_dict_for_a_model_is_built_into_it():
    def f(p: Point): ...

    assert TaskSignature.of(f).bind(({"x": 1},), {}) == {"p": Point(x=1)}


def test_in_a_built_model_a_numpy_number_becomes_a_python_number():
    def f(p: Point, n: Annotated[int, Field(gt=0)]): ...

    inputs = TaskSignature.of(f).bind(({"x": np.int64(1)}, np.int64(2)), {})
    assert type(inputs["p"].x) is int
    assert type(inputs["n"]) is np.int64


def test_constraints_are_rendered_shortly():
    def f(n: Annotated[int, Field(gt=0, description="how many")], m: Annotated[int, Field()]): ...

    assert TaskSignature.of(f).render() == "def f(n: Annotated[int, Gt(gt=0), 'how many'], m: int):"


def test_a_mutable_default_is_fresh_in_every_call():
    def f(xs: list[int] = []): ...  # noqa: B006

    signature = TaskSignature.of(f)
    signature.bind((), {})["xs"].append(1)
    assert signature.bind((), {}) == {"xs": []}


def test_a_default_that_is_a_live_object_is_shared():
    live = object()

    def f(x: object = live): ...

    assert TaskSignature.of(f).bind((), {})["x"] is live


def test_a_default_is_not_checked():
    def f(x: int = None): ...  # noqa: RUF013

    assert TaskSignature.of(f).bind((), {}) == {"x": None}


def test_variadic_parameters_are_checked_one_by_one():
    def f(*names: str, **sizes: int): ...

    signature = TaskSignature.of(f)
    assert signature.bind(("a", "b"), {"k": 1}) == {"names": ("a", "b"), "sizes": {"k": 1}}
    assert signature.bind((), {}) == {"names": (), "sizes": {}}
    with pytest.raises(InputError, match=r"names\[1\]: expected str, got int 2"):
        signature.bind(("a", 2), {})
    with pytest.raises(InputError, match=r"sizes\['k'\]: expected int, got str 'b'"):
        signature.bind((), {"k": "b"})


def test_a_wrong_argument_is_named_with_path_expected_and_got():
    def f(x: int, table: dict[str, list[int]]): ...

    with pytest.raises(InputError) as caught:
        TaskSignature.of(f).bind((True, {"a": [1, "b"]}), {})
    assert str(caught.value) == (
        "f(): x: expected int, got bool True\ntable['a'][1]: expected int, got str 'b'"
    )


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2), {}), ((1,), {"y": 2})])
def test_missing_and_unknown_arguments_show_the_signature(args, kwargs):
    def f(x: int): ...

    with pytest.raises(InputError, match=r"f\(\): .*\n    def f\(x: int\):"):
        TaskSignature.of(f).bind(args, kwargs)


# --- results -------------------------------------------------------------------------------------


def test_without_a_return_annotation_every_result_fits():
    def f(): ...

    signature = TaskSignature.of(f)
    assert (signature.has_return, signature.return_annotation) == (False, Any)
    assert signature.check_result(5) == 5


def test_a_task_that_returns_none_takes_nothing_else():
    def f() -> None: ...

    signature = TaskSignature.of(f)
    assert signature.has_return
    assert signature.check_result(None) is None
    with pytest.raises(ContractError, match="result: expected None, got int 5"):
        signature.check_result(5)


# --- text ----------------------------------------------------------------------------------------


def default_key(x): ...


def test_it_renders_as_python():
    @dataclass
    class Out:
        x: int

    def f(
        a,
        /,
        b: "Point",
        *rest: int,
        c: Color = Color.RED,
        d: np.ndarray | None = None,
        e=default_key,
        **more: str,
    ) -> dict[str, Out]: ...

    assert TaskSignature.of(f).render() == (
        "def f(a, /, b: Point, *rest: int, c: Color = Color.RED, d: ndarray | None = None, "
        "e=default_key, **more: str) -> dict[str, Out]:"
    )


def test_it_renders_with_its_docstring():
    async def f(x: int = 3) -> list[str]:
        """List x words.

        >>> f(0)
        []
        """

    assert TaskSignature.of(f).render(doc=True) == (
        'async def f(x: int = 3) -> list[str]:\n    """List x words.\n\n    >>> f(0)\n    []\n    """'
    )


def test_what_it_renders_is_python_even_with_quotes_in_the_docstring():
    def f(x: str = "\n") -> str: ...

    f.__doc__ = 'Say """hi""" with a \\n and a final "'
    namespace: dict[str, Any] = {}
    exec(TaskSignature.of(f).render(doc=True), namespace)
    assert inspect.cleandoc(namespace["f"].__doc__).rstrip() == f.__doc__


# --- the agent's own function --------------------------------------------------------------------


def task(x: int, y: str = "a"): ...


def positional_task(x: int, /): ...


def variadic_task(x: int, *rest: int, **more: int): ...


@pytest.mark.parametrize(
    ("declared", "written", "fits"),
    [
        (task, lambda x, y: 0, True),
        (task, lambda y, x: 0, True),
        (task, lambda x, y, extra=1: 0, True),
        (task, lambda *, x, y: 0, True),
        (task, lambda **kwargs: 0, True),
        (task, lambda x: 0, False),
        (task, lambda a, b: 0, False),
        (task, lambda x, y, extra: 0, False),
        (task, lambda x, y, /: 0, False),
        (positional_task, lambda anything: 0, True),
        (positional_task, lambda: 0, False),
        (variadic_task, lambda x, *others, **k: 0, True),
        (variadic_task, lambda other, *rest, **more: 0, False),
        (variadic_task, lambda x, *rest: 0, False),
        (variadic_task, lambda x, **more: 0, False),
        (task, 3, False),
    ],
)
def test_a_function_is_accepted_if_it_takes_the_inputs_by_name_and_kind(declared, written, fits):
    assert TaskSignature.of(declared).accepts(written) is fits


def test_inputs_become_the_arguments_of_an_accepted_function():
    def f(a: int, /, b: int, *rest: int, c: int, **more: int): ...

    signature = TaskSignature.of(f)
    inputs = signature.bind((1, 2, 3), {"c": 4, "d": 5})
    assert signature.arguments(inputs) == ((1, 2, 3), {"c": 4, "d": 5})
    inputs = signature.bind((1, 2), {"c": 4})
    assert signature.arguments(inputs) == ((1,), {"b": 2, "c": 4})
