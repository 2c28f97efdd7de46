from __future__ import annotations

import pytest

from agex import values
from agex.errors import StateError
from agex.state import Live


def test_a_live_state_is_a_mapping_of_the_objects_themselves():
    value = object()
    state = Live({"a": value})
    state["b"] = [1]
    del state["a"]
    assert dict(state) == {"b": [1]}
    assert len(state) == 1
    with pytest.raises(KeyError):
        state["a"]


def test_a_snapshot_is_not_changed_by_later_bindings():
    state = Live({"a": 1})
    before = state.snapshot()
    state["a"] = 2
    assert before == {"a": 1}


def test_write_back_takes_over_bound_and_deleted_names_only():
    state = Live({"kept": 1, "gone": 2, "changed": 3})
    before = state.snapshot()
    state["kept"] = "set by another task meanwhile"
    state.write_back(before, {"kept": before["kept"], "changed": 4, "new": 5})
    assert dict(state) == {"kept": "set by another task meanwhile", "changed": 4, "new": 5}


def test_write_back_goes_by_identity_not_equality():
    state = Live({"a": 1})
    same_but_other = [True]
    state.write_back({"a": 1, "b": [1]}, {"a": 1, "b": same_but_other})
    assert state["b"] is same_but_other


def test_the_names_of_a_state_can_be_changed_while_it_is_iterated():
    state = Live({"a": 1, "b": 2})
    for name in state:
        del state[name]
    assert dict(state) == {}


@pytest.mark.parametrize(
    ("name", "right"), [("my var", "my_var"), ("class", "v_class"), ("1st", "v_1st"), ("__x__", "x")]
)
def test_a_name_that_no_variable_can_have_is_refused_with_one_that_can(name, right):
    with pytest.raises(StateError, match=rf"write state\['{right}'\]"):
        Live()[name] = 1
    with pytest.raises(StateError):
        Live({name: 1})


def test_the_repr_names_the_variables_and_shows_no_values():
    assert repr(Live({"b": 2, "a": "secret"})) == "Live(a, b)"


def test_a_group_of_a_worker_is_read_once_to_show_all_its_variables(monkeypatch):
    state = Live()
    shared = [1]
    variables = {f"v{number}": [shared, number] for number in range(9)}
    (group,) = values.encode(variables, allow=values.Allow(()))
    state.write_back({}, {name: values.Packed(group, name) for name in group.names})
    read = []
    sketched = values.sketched
    monkeypatch.setattr(
        values, "sketched", lambda *args, **kwargs: read.append(1) or sketched(*args, **kwargs)
    )
    assert {name: state.sketch(name) for name in variables} == variables
    assert len(read) == 1
