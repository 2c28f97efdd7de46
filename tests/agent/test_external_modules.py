"""Functions of a module act on the world, as registered functions do: journalled, approved, made once."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from agex import Agent, DefinitionError, Disk, MemberSpec, TaskSuspended, Versioned
from agex.testing import ScriptedModel, python_action

SOURCE = '''
"""Payments of the shop."""
CURRENCY = "EUR"
made = MADE

def charge(amount: int, to: str = "ann") -> str:
    """Charge somebody."""
    made.append((amount, to))
    return f"{amount} {CURRENCY} to {to}"

def _inner():
    made.append("inner")
'''


def payments(made: list[Any], more: str = "") -> ModuleType:
    module = ModuleType("payments")
    exec(SOURCE.replace("made = MADE\n", "") + more, vars(module) | {"made": made}, vars(module))
    for name in ("charge", "_inner"):
        function = vars(module)[name]
        function.__globals__["CURRENCY"] = "EUR"
    return module


def shop(made: list[Any], codes: list[str], state: Any = None, *, more: str = "", **settings: Any):
    agent = Agent(model=ScriptedModel([[python_action(code)] for code in codes]), name="shop", state=state)
    agent.module(payments(made, more), **{"external": True, **settings})

    @agent.task
    def settle(amount: int) -> str:
        """Settle."""

    return settle


CODE = "import payments\ntask_success(payments.charge(amount))"


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        "from payments import charge\ntask_success(charge(amount))",
        "import payments as p\nf = p.charge\ntask_success(f(amount=amount))",
    ],
)
def test_a_call_is_journalled_however_the_function_is_imported(code):
    made: list[Any] = []
    state = Versioned()
    assert shop(made, [code], state)(5) == "5 EUR to ann"
    assert made == [(5, "ann")]
    assert any("payments.charge" in commit.message for commit in state.history())


def test_a_call_waits_for_approval_and_its_arguments_can_be_changed(tmp_path):
    made: list[Any] = []
    state = Versioned(Disk(tmp_path / "s"))
    with pytest.raises(TaskSuspended) as stopped:
        shop(made, [CODE], state, approval=True)(5)
    assert (stopped.value.call.name, stopped.value.call.args) == ("payments.charge", (5,))
    state.close()
    later = Versioned(Disk(tmp_path / "s"))
    run = shop(made, [], later, approval=True).resume()
    assert run.approve({"amount": 3, "to": "bob"}).value == "3 EUR to bob"
    assert made == [(3, "bob")]
    later.close()


def test_plain_data_is_there_and_private_members_are_not():
    made: list[Any] = []
    code = "import payments\ntask_success(payments.CURRENCY + str('_inner' in dir(payments)))"
    assert shop(made, [code])(1) == "EURFalse"


def test_no_way_leads_past_the_journal():
    """Stopped by: agent.durable.external_functions, sandbox.guards.attribute_doors."""
    made: list[Any] = []
    code = """
import payments
refused = []
for name in ("wrapped", "closure", "globals", "self", "func", "code", "defaults", "call"):
    try:
        getattr(payments.charge, f"__{name}__")
    except Exception:
        refused.append(name)
task_success(" ".join(refused))
"""
    assert shop(made, [code])(1) == "wrapped closure globals self func code defaults"
    assert made == []


def test_members_that_could_act_unseen_are_refused_until_they_are_left_out():
    more = "class Client:\n  def charge(self): return 1\n"
    with pytest.raises(DefinitionError, match=r"members of other kinds.*: Client\. Leave them out"):
        shop([], [CODE], more=more)(1)
    assert shop([], [CODE], more=more, exclude=["_*", "Client"])(1) == "1 EUR to ann"


def test_functions_are_marked_one_by_one_and_by_their_other_names():
    made: list[Any] = []
    state = Versioned()
    more = "def look():\n    return 'looked'\nalias = charge\n"
    code = "import payments as p\np.charge(1)\np.alias(2)\nlist(map(p.charge, [3]))\ntask_success(p.look())"
    task = shop(
        made, [code], state, more=more, external=False, configure={"charge": MemberSpec(external=True)}
    )
    assert task(1) == "looked"
    assert made == [(1, "ann"), (2, "ann"), (3, "ann")]
    begun = [commit.message for commit in state.history() if commit.message.endswith("begins")]
    assert begun[::-1] == [
        f"settle: turn 1, payments.{name} begins" for name in ("charge", "alias", "charge")
    ]


def test_a_function_of_a_marked_module_can_be_left_unmarked():
    made: list[Any] = []
    state = Versioned()
    more = "def look():\n    return 'looked'\n"
    code = "import payments as p\np.charge(1)\ntask_success(p.look())"
    reads = {"look": MemberSpec(external=False)}
    assert shop(made, [code], state, more=more, configure=reads)(1) == "looked"
    begun = [commit.message for commit in state.history() if commit.message.endswith("begins")]
    assert begun == ["settle: turn 1, payments.charge begins"]


@pytest.mark.parametrize("name", ["CURRENCY", "Client.charge", "chrge"])
def test_a_mark_of_what_is_no_function_is_refused(name):
    with pytest.raises(DefinitionError, match=r"is none; register"):
        shop([], [CODE], external=False, configure={name: MemberSpec(external=True)})


def test_several_samples_are_refused():
    with pytest.raises(DefinitionError, match="payments"):
        shop([], [CODE]).using(samples=2)(1)


def test_a_rejected_call_is_an_error_in_the_code():
    made: list[Any] = []
    code = "import payments\ntry: payments.charge(1)\nexcept Exception as e: task_success(str(e))"
    task = shop(made, [code], Versioned(), approval=True)
    assert task.using(on_approval=lambda call: False)(1) == "payments.charge was not approved"
    assert made == []
