"""Schemas of pandera, as annotations and as checks: ``DataFrame[Model]``, ``Annotated[DataFrame, schema]``.

pandera is never imported here: a schema is met only where the user's program has imported it. It validates
lazily, so that all failures are told at once, in one line for each column and check.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import typing_extensions

from agex._interpreter.type_slots import module_of, mro_of, name_of
from agex.contract.mismatch import Mismatch, Problem, item
from agex.contract.plain_values import is_guest_made
from agex.contract.preview import short_repr
from agex.contract.real_types import is_subclass, numpy_number
from agex.contract.walk import Check, Walk
from agex.errors import DefinitionError
from agex.escaping import line

__all__ = [
    "SchemaCheck",
    "frame_class",
    "is_frame_model",
    "is_schema",
    "named_schema",
    "require_version",
    "schema_check",
    "schema_hint",
    "schema_text",
    "schemas_in",
]

OLDEST = (0, 24)
"""The version of pandera that has ``pandera.pandas``: https://github.com/unionai-oss/pandera/releases."""
INSTALL = 'pip install "pandera[pandas]>=0.24"'
CASES = 3
"""Failing values that a line shows: enough to see the pattern."""
MOST_COLUMNS = 40
"""Columns of a schema that the prompt shows."""
_LINE_CHARS = 200


# -- which objects are schemas -------------------------------------------------------------------


def is_schema(value: object) -> bool:
    """Return whether a value is a schema object of pandera, or a class of one."""
    return is_frame_model(value) or (_is_of_pandera(type(value)) and hasattr(value, "validate"))


def is_frame_model(value: object) -> bool:
    """Return whether a value is a class that derives from ``DataFrameModel``."""
    return isinstance(value, type) and any(
        name_of(base) == "DataFrameModel" and _root(base) == "pandera" for base in mro_of(value)
    )


def frame_class(origin: object) -> type | None:
    """Return the class of frames that ``pandera.typing.DataFrame`` stands for; None for any other class."""
    if not isinstance(origin, type) or not _is_of_pandera(origin):
        return None
    bases = [base for base in mro_of(origin) if _root(base) in _FRAMES]
    return bases[0] if bases else None


def schemas_in(annotation: Any) -> Iterator[Any]:
    """Yield the schemas in a resolved annotation, at any depth."""
    origin, args = typing_extensions.get_origin(annotation), typing_extensions.get_args(annotation)
    if origin is typing_extensions.Annotated:
        yield from (each for each in args[1:] if is_schema(each))
        args = args[:1]
    for each in args:
        if is_frame_model(each):
            yield each
        else:
            yield from schemas_in(each)


_FRAMES = ("pandas", "polars")


def _root(cls: type) -> str:
    return str(module_of(cls)).partition(".")[0]


def _is_of_pandera(cls: type) -> bool:
    return any(_root(base) == "pandera" for base in mro_of(cls))


def require_version(version: str) -> None:
    """Refuse a pandera that is too old.

    Raises:
        DefinitionError: with the command that installs another.
    """
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < OLDEST:
        raise DefinitionError(f"agex takes schemas of pandera 0.24 or later, not {version}: {INSTALL}")


def schema_hint(annotation: str) -> str:
    """Return what is missing where an annotation that is text names a schema; empty for any other."""
    if not re.search(r"\bDataFrame\[", annotation):
        return ""
    if importlib.util.find_spec("pandera") is None:
        return f"; a frame with a schema is pandera's: {INSTALL}"
    return "; a frame with a schema is written DataFrame[Model], with `from pandera.typing import DataFrame`"


# -- schemas as checks ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SchemaCheck:
    """A schema as a check of a task's value; what it coerces is judged and not kept."""

    schema: Any
    """Of pandera: an object or a model."""

    def __post_init__(self) -> None:
        _readable(self.schema)

    @property
    def __name__(self) -> str:
        """The name of the schema, for messages."""
        return f"the schema {named_schema(self.schema)}"

    def __call__(self, value: Any, inputs: Any) -> str | None:
        """Return what is wrong with the value, or None."""
        try:
            schema_check(self.schema)(value, Walk(keep_numbers=False))
        except Mismatch as mismatch:
            return f"\n{mismatch.text('result')}"
        return None


def schema_check(schema: Any) -> Check:
    """Make the check of a schema; where it coerces or parses, the frame that it makes is the value.

    Raises:
        DefinitionError: the schema is of a kind or version that cannot be read.
    """
    readable = _readable(schema)
    changes = _changes(readable)

    def check(value: Any, walk: Walk) -> Any:
        _require_frame(readable, value)
        validated = _validated(readable, value)
        return validated if changes and walk.applies else value

    return check


def named_schema(schema: Any) -> str:
    """Return the name of a schema: of the model's class, else its own, else of its class."""
    if isinstance(schema, type):
        return str(schema.__name__)
    return str(getattr(schema, "name", None) or type(schema).__name__)


def _readable(schema: Any) -> Any:
    """Return a schema as an object that validates.

    Raises:
        DefinitionError: pandera is too old, or it is another kind of schema.
    """
    # Not by importlib.metadata: a check is made while guest code runs, when nothing may list directories.
    require_version(str(getattr(sys.modules.get("pandera"), "__version__", "0")))
    made: Any = schema.to_schema() if is_frame_model(schema) else schema
    library, kind = _kind(made)
    if library not in _FRAMES or kind not in ("DataFrame", "Series"):
        raise DefinitionError(
            f"{type(made).__module__}.{type(made).__name__} cannot be checked; "
            "give a DataFrameSchema, a SeriesSchema or a DataFrameModel of pandera.pandas or pandera.polars"
        )
    return made


def _kind(schema: Any) -> tuple[str, str]:
    """Return the library and the class of the values that a schema is for."""
    for base in mro_of(type(schema)):
        module = str(module_of(base)).split(".")
        if module[:2] == ["pandera", "api"] and str(name_of(base)).endswith("Schema"):
            return module[2], str(name_of(base)).removesuffix("Schema")
    return "", ""


def _require_frame(schema: Any, value: Any) -> None:
    """Refuse a value that the schema is not for, and one whose class guest code has made: it could lie."""
    library, kind = _kind(schema)
    cls = getattr(sys.modules.get(library), kind, None)
    if cls is None or not is_subclass(type(value), cls) or is_guest_made(type(value)):
        raise Mismatch.of(f"expected {kind} of {library}", value)


def _changes(schema: Any) -> bool:
    """Return whether a schema makes another frame of what it validates."""
    index = getattr(schema, "index", None)
    parts = [
        schema,
        *(getattr(schema, "columns", None) or {}).values(),
        *([] if index is None else [index, *(getattr(index, "indexes", None) or [])]),
    ]
    marks = ("coerce", "parsers", "add_missing_columns", "drop_invalid_rows")
    return (
        getattr(schema, "strict", None) == "filter"
        or any(bool(getattr(part, mark, None)) for part in parts for mark in marks)
        or any(getattr(part, "default", None) is not None for part in parts)
    )


def _validated(schema: Any, value: Any) -> Any:
    """Return a frame as a schema validates it.

    Raises:
        Mismatch: with a problem for each column and check.
    """
    errors = importlib.import_module("pandera.errors")
    with _enabled():
        try:
            return schema.validate(value, lazy=True)
        except errors.SchemaErrors as error:
            found = list(_problems(schema, error, value))
        except errors.SchemaError as error:  # of what cannot be put off
            found = [Problem(what=_one_line(str(error)))]
    # Raised here, so that the mismatch does not hold pandera's error, and so the frame.
    raise Mismatch(found, len(found))


@contextmanager
def _enabled() -> Iterator[None]:
    """Validate whatever the environment says: a contract that is switched off would accept anything."""
    config = importlib.import_module("pandera.config")
    with config.config_context(
        validation_enabled=True, validation_depth=config.ValidationDepth.SCHEMA_AND_DATA
    ):
        yield


# -- what is wrong -------------------------------------------------------------------------------


@dataclass
class _Failure:
    """The failing values of one check of one column, or of the whole frame."""

    column: Any
    check: str
    is_of_frame: bool
    is_of_index: bool
    first: tuple[Any, Any]
    """The label of a row, None for a failure that is of no row, and the value."""
    rows: dict[Any, list[tuple[Any, Any]]] = field(default_factory=dict)
    """Columns and values of the first rows, by label."""
    labels: set[Any] = field(default_factory=set)
    """Of all rows."""
    values: int = 0

    @property
    def count(self) -> int:
        """Rows of a frame that fail, or values of a column."""
        return len(self.labels) if self.is_of_frame else self.values

    def add(self, label: Any, column: Any, value: Any) -> None:
        """Note a failing value."""
        self.labels.add(label)
        self.values += 1
        if label in self.rows or len(self.rows) < CASES:
            self.rows.setdefault(label, []).append((column, value))


def _problems(schema: Any, error: Any, value: Any) -> Iterator[Problem]:
    """Yield a problem for each check of each column that fails."""
    failures = _failures(error.failure_cases)
    unusable = {each.column for each in failures if each.check.startswith(("dtype(", "coerce_dtype("))}
    coerced = {each.column for each in failures if each.check.startswith("coerce_dtype(")}
    has_faults = any(each.check.startswith(_STRUCTURE) for each in failures)
    for each in sorted(failures, key=lambda one: (not one.check.startswith(_STRUCTURE), one.is_of_frame)):
        if each.check.startswith("dtype(") and each.column in coerced:
            continue  # told already, with the values
        if _raised(each) and (each.column in unusable or (each.is_of_frame and has_faults)):
            continue  # the check met a column that is missing or of another type
        yield Problem(what=line(_told(schema, each, value)), path=_path(each))


def _path(failure: _Failure) -> str:
    if failure.is_of_index:
        return ".index" if failure.column is None else f".index level {short_repr(failure.column)}"
    return "" if failure.is_of_frame or failure.column is None else item(failure.column)


_STRUCTURE = ("column_in_", "column_ordered", "dtype(", "coerce_dtype(")
"""The checks that are told first: without their columns, the others say little."""


def _failures(cases: Any) -> list[_Failure]:
    """Gather pandera's table of failing values by column and check."""
    names = ("schema_context", "column", "check", "check_number", "failure_case", "index")
    found: dict[Any, _Failure] = {}
    for context, column, check, number, case, given in zip(
        *(cases[name].to_list() for name in names), strict=True
    ):
        label = None if _is_missing(given) else given
        number = None if _is_missing(number) else number  # noqa: PLW2901 - NaN is no key
        column = None if _is_missing(column) else column  # noqa: PLW2901
        is_of_frame = context == "DataFrameSchema"
        # The names of missing columns are values, and each is told by itself.
        told = case if is_of_frame and str(check).startswith("column_") else None
        key = (context, None if is_of_frame else column, check, number, told)
        if key not in found:
            name = "" if _is_missing(check) else str(check)
            is_of_index = str(context).endswith("Index")
            found[key] = _Failure(key[1], name, is_of_frame, is_of_index, (label, case))
        found[key].add(label, column, case)
    return list(found.values())


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - as NaN alone is


def _raised(failure: _Failure) -> bool:
    """Return whether a check raised an error: pandera gives its text as the only failing value."""
    label, value = failure.first
    return label is None and bool(re.match(r"\w+(Error|Exception)\(", str(value)))


def _told(schema: Any, failure: _Failure, value: Any) -> str:
    """Return what is wrong, as one line."""
    check, (label, first) = failure.check, failure.first
    kind, _, argument = check.partition("(")
    argument = argument.removesuffix(")").strip("'\"")
    if not check and failure.is_of_index:
        return f"expected the index {_index(schema.index)}"
    if check == "column_in_dataframe":
        return f"the column {short_repr(first)} is missing; the columns are {_names(value.columns)}"
    if check == "column_in_schema":
        return f"the column {short_repr(first)} is not expected; expected are {_names(schema.columns)}"
    if check == "column_ordered":
        return f"the column {short_repr(first)} is out of order; the order is {_names(schema.columns)}"
    if kind == "coerce_dtype":
        return f"cannot be converted to {argument}: {_cases(failure)}"
    if kind == "dtype":
        got = f"got {first}" if label is None else f"but there is {_cases(failure)}"
        return f"expected dtype {argument}, {got}"
    if check == "not_nullable":
        return f"{failure.count} missing ({_labels(failure)}); none may be"
    if check in ("field_uniqueness", "multiple_fields_uniqueness"):
        return f"must be unique, and is not: {_cases(failure)}"
    if _raised(failure):
        return f"the check {_check_name(check)} raised {_one_line(str(first))}"
    if label is None:  # of the column or the frame as a whole
        return f"does not pass {_check_name(check)}"
    count = failure.count
    what = "rows do" if failure.is_of_frame else "values do"
    what = what if count > 1 else what[:-4] + " does"
    return f"{count} {what} not pass {_check_name(check)}: {_cases(failure)}"


def _cases(failure: _Failure) -> str:
    """Write the first failing values with the labels of their rows, and count the rest."""
    told = []
    for label, cells in failure.rows.items():
        if failure.is_of_frame:
            values = ", ".join(
                f"{column}={_value(value)}" if column is not None else _value(value)
                for column, value in cells
            )
        else:
            values = ", ".join(_value(value) for _, value in cells[:CASES])
        told.append(values if label is None else f"{values} in row {_value(label)}")
    return "; ".join(told) + _more(failure)


def _labels(failure: _Failure) -> str:
    return f"row{'s' * (failure.count > 1)} {', '.join(map(_value, failure.rows))}{_more(failure)}"


def _more(failure: _Failure) -> str:
    more = len(failure.labels) - CASES
    return f"; and {more} more" if more > 0 else ""


def _value(value: Any) -> str:
    number = numpy_number(value)
    return short_repr(value if number is None else number, 40)


def _names(names: Iterable[Any]) -> str:
    told = [short_repr(name, 40) for name in names]
    return ", ".join(told[:20]) + (f" and {len(told) - 20} more" if len(told) > 20 else "")


def _one_line(text: str) -> str:
    return short_repr(" ".join(text.split()), _LINE_CHARS).strip("'\"")


_SIGNS = {
    "greater_than": ">",
    "greater_than_or_equal_to": ">=",
    "less_than": "<",
    "less_than_or_equal_to": "<=",
    "equal_to": "==",
    "not_equal_to": "!=",
    "isin": "in",
    "notin": "not in",
}


def _check_name(check: str) -> str:
    """Return a check as a reader would write it: ``>= 0`` for ``greater_than_or_equal_to(0)``."""
    name, _, argument = check.partition("(")
    shown = f"{_SIGNS[name]} {argument.removesuffix(')')}" if name in _SIGNS else check
    return _one_line(shown)


# -- the schema in the prompt --------------------------------------------------------------------


def schema_text(schema: Any, owner: str) -> str:
    """Return the columns of a schema as a comment: dtype, whether missing values may be, checks."""
    made = _readable(schema)
    if _kind(made)[1] == "Series":
        return _comment([f"{owner}: {_column(made)}"])
    limits = [
        *({True: ["no others"], "filter": ["others are dropped"]}.get(made.strict, [])),
        *(["in this order"] if made.ordered else []),
        *([f"rows unique by {_names(_listed(made.unique))}"] if made.unique else []),
        *map(_check_name, _checks(made)),
    ]
    heads = [f"{owner}: a frame with these columns{''.join(f'; {each}' for each in limits)}"]
    columns = [f"  {short_repr(name, 60)}: {_column(each)}" for name, each in made.columns.items()]
    if len(columns) > MOST_COLUMNS:
        columns[MOST_COLUMNS:] = [f"  and {len(columns) - MOST_COLUMNS} more"]
    index = [] if made.index is None else [f"  index: {_index(made.index)}"]
    return _comment([*heads, *columns, *index])


def _comment(lines: Iterable[str]) -> str:
    return "\n".join(line(f"# {each}") for each in lines)


def _index(index: Any) -> str:
    levels = getattr(index, "indexes", None) or [index]
    return "; ".join(f"{each.name or 'without a name'}: {_column(each)}" for each in levels)


def _column(column: Any) -> str:
    said = [
        "any dtype" if column.dtype is None else str(column.dtype),
        *(["may be missing"] if column.nullable else []),
        *(["unique"] if column.unique else []),
        *(["converted"] if column.coerce else []),
        *(["may be left out"] if not getattr(column, "required", True) else []),
        *map(_check_name, _checks(column)),
        *([_one_line(column.description)] if getattr(column, "description", None) else []),
    ]
    return ", ".join(said)


def _checks(part: Any) -> list[str]:
    return [str(each.error or each.name) for each in part.checks or []]


def _listed(names: Any) -> list[Any]:
    return [names] if isinstance(names, str) else list(names)
