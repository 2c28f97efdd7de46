import copy
import pickle
from typing import Annotated

import pandas as pd
import pytest

from agex import Agent, DefinitionError, InputError, TaskTimeout
from agex.contract import Checker, ContractError
from agex.contract.frame_schemas import require_version, schema_hint
from agex.testing import ScriptedModel, python_action

pa = pytest.importorskip("pandera.pandas", reason="pandera has no wheel here")
pandera_typing = pytest.importorskip("pandera.typing", reason="pandera has no wheel here")
DataFrame = pandera_typing.DataFrame


class Sales(pa.DataFrameModel):
    """Sales of a day."""

    id: int = pa.Field(unique=True)
    total: float = pa.Field(ge=0, nullable=True)
    kind: str = pa.Field(isin=["a", "b"])

    class Config:
        strict = True


class Dated(pa.DataFrameModel):
    id: int
    day: pd.Timestamp = pa.Field(coerce=True)


AMOUNTS = pa.DataFrameSchema({"amount": pa.Column(int, pa.Check.gt(0))}, name="amounts")

GOOD = pd.DataFrame({"id": [1, 2], "total": [1.5, None], "kind": ["a", "b"]})
BAD = pd.DataFrame(
    {"id": [1, 1, 3, 4], "total": [-1, -2, -3, -4.5], "kind": ["a", "b", "c", "a"]}, index=list("pqrs")
)


def _failure(annotation, value):
    with pytest.raises(ContractError) as caught:
        Checker(annotation).check(value)
    return str(caught.value).split("\n")


def test_a_frame_that_fits_a_model_comes_back_as_it_is():
    assert Checker(DataFrame[Sales]).check(GOOD) is GOOD


def test_all_that_fails_is_told_at_once_with_values_and_row_labels():
    minus = "-1.0 in row 'p'; -2.0 in row 'q'; -3.0"
    assert _failure(DataFrame[Sales], BAD) == [
        "result['id']: must be unique, and is not: 1 in row 'p'; 1 in row 'q'",
        f"result['total']: 4 values do not pass >= 0: {minus} in row 'r'; and 1 more",
        "result['kind']: 1 value does not pass in ['a', 'b']: 'c' in row 'r'",
    ]


def test_columns_that_are_missing_or_not_expected_are_told_first():
    told = _failure(DataFrame[Sales], GOOD.rename(columns={"kind": "sort"}).assign(total=[-1.0, 0.0]))
    assert told == [
        "result: the column 'sort' is not expected; expected are 'id', 'total', 'kind'",
        "result: the column 'kind' is missing; the columns are 'id', 'total', 'sort'",
        "result['total']: 1 value does not pass >= 0: -1.0 in row 0",
    ]


def test_a_check_that_a_wrong_type_makes_raise_is_not_told_beside_the_type():
    assert _failure(Annotated[pd.DataFrame, AMOUNTS], pd.DataFrame({"amount": ["x"]})) == [
        "result['amount']: expected dtype int64, but there is 'x' in row 0"
    ]


def test_a_check_of_the_whole_frame_names_the_cells_of_the_row():
    schema = pa.DataFrameSchema(checks=pa.Check(lambda each: each["a"] < each["b"], error="a below b"))
    told = _failure(Annotated[pd.DataFrame, schema], pd.DataFrame({"a": [1, 5], "b": [2, 3]}))
    assert told == ["result: 1 row does not pass a below b: a=5, b=3 in row 1"]


def test_rows_with_one_label_are_counted_each():
    frame = pd.DataFrame({"amount": [0, 0, 1]}, index=[7, 7, 7])
    assert _failure(Annotated[pd.DataFrame, AMOUNTS], frame) == [
        "result['amount']: 2 values do not pass > 0: 0, 0 in row 7"
    ]


def test_an_index_that_fails_is_told_as_the_index():
    schema = pa.DataFrameSchema(index=pa.Index(int, pa.Check.ge(0)))
    assert _failure(Annotated[pd.DataFrame, schema], pd.DataFrame(index=[0, -1])) == [
        "result.index: 1 value does not pass >= 0: -1 in row -1"
    ]


def test_missing_values_are_told_with_their_rows():
    frame = GOOD.assign(kind=[None, "a"])
    assert _failure(DataFrame[Sales], frame) == ["result['kind']: 1 missing (row 0); none may be"]


def test_a_message_is_short_however_much_fails():
    frame = pd.DataFrame({"amount": range(-50_000, 0)})
    assert len("\n".join(_failure(Annotated[pd.DataFrame, AMOUNTS], frame))) < 200


def test_a_model_that_coerces_makes_the_value():
    given = pd.DataFrame({"id": [1], "day": ["2024-02-29"]})
    value = Checker(DataFrame[Dated]).check(given)
    assert value["day"].tolist() == [pd.Timestamp("2024-02-29")]
    assert given["day"].tolist() == ["2024-02-29"]


def test_a_value_that_cannot_be_coerced_is_named():
    (told,) = _failure(DataFrame[Dated], pd.DataFrame({"id": [1], "day": ["soon"]}))
    assert told.startswith("result['day']: cannot be converted to datetime64[ns]: 'soon' in row 0")


def test_frames_within_other_types_are_checked():
    annotation = dict[str, DataFrame[Sales]] | None
    assert Checker(annotation).check(None) is None
    assert Checker(annotation).check({"x": GOOD})["x"] is GOOD
    with pytest.raises(ContractError, match="'kind' is missing"):
        Checker(dict[str, DataFrame[Sales]]).check({"x": GOOD[["id", "total"]]})


def test_none_passes_where_the_annotation_allows_it():
    assert Checker(Annotated[pd.DataFrame | None, AMOUNTS]).check(None) is None


def test_anything_that_is_no_frame_is_told_as_such():
    assert _failure(DataFrame[Sales], [1]) == ["result: expected DataFrame, got list [1]"]


def test_a_series_schema_checks_a_series():
    annotation = Annotated[pd.Series, pa.SeriesSchema(int, pa.Check.gt(0), name="n")]
    assert _failure(annotation, pd.Series([1, 0], name="n")) == [
        "result['n']: 1 value does not pass > 0: 0 in row 1"
    ]


def test_a_frame_of_polars_is_checked_by_its_schemas():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    pp = pytest.importorskip("pandera.polars", reason="this pandera has none for polars")
    annotation = Annotated[polars.DataFrame, pp.DataFrameSchema({"a": pp.Column(int, pp.Check.ge(0))})]
    good = polars.DataFrame({"a": [1]})
    assert Checker(annotation).check(good) is good
    assert len(_failure(annotation, polars.DataFrame({"a": [-1]}))) == 1
    assert _failure(annotation, good.to_pandas())[0].startswith("result: expected DataFrame")


def test_validation_that_the_environment_switches_off_is_made_all_the_same():
    config = pytest.importorskip("pandera.config", reason="pandera has no wheel here")
    with config.config_context(validation_enabled=False):
        assert len(_failure(DataFrame[Sales], BAD)) == 3


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (Sales, r"write DataFrame\[Sales\]"),
        (DataFrame[int], r"write DataFrame\[Model\]"),
        (pandera_typing.Series[int], r"Annotated\[Series, schema\]"),
        (Annotated[pd.DataFrame, pa.Column(int)], "give a DataFrameSchema"),
        ("DataFrame[Missing]", "from pandera.typing import DataFrame"),
    ],
    ids=["a model alone", "no model", "a series", "a column", "an unknown name"],
)
def test_an_annotation_that_cannot_be_checked_says_how_it_is_written(annotation, told):
    with pytest.raises(DefinitionError, match=told):
        Checker(annotation)


def test_a_pandera_that_is_too_old_is_refused_with_the_command():
    with pytest.raises(DefinitionError, match=r'not 0\.20\.4: pip install "pandera\[pandas\]>=0\.24"'):
        require_version("0.20.4")
    require_version("0.24.0")
    require_version("1.0rc1")


def test_other_annotations_have_no_hint_to_pandera():
    assert schema_hint("list[Missing]") == ""


# -- tasks


def _task(*turns, checks=(), returns=pd.DataFrame, style="full"):
    model = ScriptedModel([[python_action(turn)] for turn in turns], style=style)
    agent = Agent(model=model, max_iterations=len(turns))

    def tidy(frame: pd.DataFrame):
        """Tidy it."""

    tidy.__annotations__["return"] = returns
    return agent.task(checks=checks)(tidy), model


def _prompt(model):
    return "\n".join(str(message.content) for message in model.requests[0].messages)


def test_the_prompt_shows_the_columns_beneath_the_signature():
    task, model = _task("task_success(frame)", returns=DataFrame[Sales])
    task(GOOD)
    assert "-> DataFrame[Sales]:" in _prompt(model)
    assert (
        "# DataFrame[Sales]: a frame with these columns; no others\n"
        "#   'id': int64, unique\n"
        "#   'total': float64, may be missing, >= 0\n"
    ) in _prompt(model)


def test_the_short_prompt_of_a_small_model_shows_them_too():
    task, model = _task("task_success(frame)", checks=[Sales], style="completion")
    task(GOOD)
    assert "# the result: a frame with these columns; no others\n#   'id': int64, unique\n" in _prompt(model)


def test_a_schema_beside_the_type_is_shown_as_the_columns_of_the_result():
    task, model = _task("task_success(frame.assign(amount=[1, 2]))", returns=Annotated[pd.DataFrame, AMOUNTS])
    task(GOOD)
    assert "-> DataFrame:" in _prompt(model)
    assert "# the result: a frame with these columns\n#   'amount': int64, > 0" in _prompt(model)


@pytest.mark.parametrize("schema", [Sales, Sales.to_schema()], ids=["a model", "a schema"])
def test_a_schema_is_a_check(schema):
    task, model = _task("task_success(frame.assign(id=1))", "task_success(frame)", checks=[schema])
    assert task(GOOD) is GOOD
    assert "#   'id': int64, unique" in _prompt(model)
    assert "The value must pass: the schema Sales" in _prompt(model)
    assert "does not pass the schema Sales:" in str(model.requests[1].messages[-1].content)


def test_a_check_that_coerces_judges_and_leaves_the_value():
    task, _ = _task("task_success(frame)", checks=[Dated])
    assert task(pd.DataFrame({"id": [1], "day": ["2024-02-29"]}))["day"].tolist() == ["2024-02-29"]
    task, _ = _task("task_success(frame)", checks=[Dated])
    with pytest.raises(TaskTimeout, match="'soon' in row 0"):
        task(pd.DataFrame({"id": [1], "day": ["soon"]}))


def test_an_input_is_checked_by_its_model():
    agent = Agent(model=ScriptedModel([]))

    def count(sales: DataFrame[Sales]) -> int:
        """Count them."""

    with pytest.raises(InputError, match=r"sales\['kind'\]: 1 value does not pass in"):
        agent.task(count)(BAD[2:3].assign(total=1.0))


def test_guest_code_cannot_pass_with_a_class_that_lies():
    lie = """\
class Fine(type(frame)):
    def __getitem__(self, name):
        return frame[name]

task_success(Fine({"amount": [-1]}))
"""
    task, _ = _task(lie, returns=Annotated[pd.DataFrame, AMOUNTS])
    with pytest.raises(TaskTimeout, match="last error"):
        task(pd.DataFrame({"amount": [1]}))


def test_a_task_with_a_schema_as_a_check_can_be_copied_and_pickled():
    task, _ = _task("task_success(frame)", checks=[AMOUNTS])
    (check,) = task.definition.terms.checks
    for other in (copy.copy(check), pickle.loads(pickle.dumps(check))):
        assert other(pd.DataFrame({"amount": [1]}), None) is None
        assert "> 0" in other(pd.DataFrame({"amount": [0]}), None)
