from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from agex.agent import Agent, Budget, OutputEvent, Run, SystemNoteEvent, TaskStartEvent, Token, events
from agex.errors import BudgetExceeded, DefinitionError, InputError, TaskClarify, TaskFail, TaskTimeout
from agex.models.base import Reply, Usage
from agex.state import Live
from agex.testing import ScriptedModel, python_action


def scripted(*codes, **settings):
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def double(agent, **settings):
    def f(x: int) -> int:
        """Double it."""

    return agent.task(**settings)(f)


def test_a_task_returns_the_value_the_agent_gave():
    agent, _ = scripted("task_success(x * 2)")
    assert double(agent)(4) == 8


def test_inputs_are_variables_and_attributes_of_inputs():
    agent, _ = scripted("task_success(x + inputs.x)")
    assert double(agent)(4) == 8


def test_variables_live_from_turn_to_turn():
    agent, _ = scripted("y = x + 1\nimport math", "task_success(y * int(math.sqrt(4)))")
    assert double(agent)(4) == 10


def test_variables_of_a_plain_task_die_with_it():
    agent, model = scripted("y = 1\ntask_success(1)", "task_success(y)", "task_success(2)")
    task = double(agent)
    task(1)
    assert task(1) == 2
    assert "NameError" in model.requests[-1].messages[-1].content


def test_inputs_are_passed_by_reference():
    agent, _ = scripted("task_success(items)")

    @agent.task
    def same(items: list[int]) -> list[int]: ...

    given = [1, 2]
    assert same(given) is given


def test_unpicklable_inputs_are_fine():
    agent, _ = scripted("task_success(lock is not None and next(numbers))")

    @agent.task
    def use(lock: object, numbers: object) -> int: ...

    assert use(threading.Lock(), iter([7])) == 7


def test_the_value_of_a_last_expression_and_the_output_are_shown():
    agent, model = scripted("print('printed')\nx + 1", "task_success(1)")
    double(agent)(4)
    assert model.requests[1].messages[-1].content == "printed\n5"


def test_an_error_shows_the_agents_line():
    agent, model = scripted("a = 1\nb = a / 0", "task_success(1)")
    double(agent)(4)
    shown = model.requests[1].messages[-1].content
    assert "line 2" in shown
    assert "b = a / 0" in shown
    assert "ZeroDivisionError" in shown


def test_code_that_shows_nothing_says_so():
    agent, model = scripted("y = 1", "task_success(1)")
    double(agent)(4)
    assert model.requests[1].messages[-1].content == "(The code ran without an error and printed nothing.)"


def test_output_is_bounded():
    agent, model = scripted("for i in range(100_000): print(i)", "task_success(1)", max_output_chars=1_000)
    run = double(agent).run(4)
    (output,) = [event for event in run.events if isinstance(event, OutputEvent)]
    assert len(output.text) < 1_300
    assert len(model.requests[1].messages[-1].content) < 1_300


def test_a_value_of_the_wrong_type_is_an_error_in_the_agents_code():
    agent, model = scripted(
        "try:\n    task_success('no')\nexcept TypeError as e:\n    print('caught', e)", "task_success(2)"
    )
    assert double(agent)(4) == 2
    assert "caught result: expected int, got str 'no'" in model.requests[1].messages[-1].content


def test_the_end_of_a_task_cannot_be_swallowed():
    agent, _ = scripted("try:\n    task_success(1)\nexcept:\n    pass\nfinally:\n    x = 5\nwhile True: pass")
    assert double(agent)(4) == 1


@pytest.mark.parametrize(("call", "error"), [("task_fail", TaskFail), ("task_clarify", TaskClarify)])
def test_the_agent_can_end_a_task_without_a_value(call, error):
    agent, _ = scripted(f"{call}('because')")
    with pytest.raises(error) as caught:
        double(agent)(4)
    assert caught.value.message == "because"
    assert isinstance(caught.value, Exception)
    assert isinstance(caught.value.run.events[0], TaskStartEvent)
    assert not caught.value.run.ok


def test_a_task_finishes_by_defining_its_own_function():
    agent, _ = scripted("def f(x):\n    return x * 2")
    assert double(agent)(4) == 8


def test_a_function_with_other_parameters_does_not_finish_the_task():
    agent, model = scripted("def f(a, b):\n    return 1", "task_success(3)")
    assert double(agent)(4) == 3
    assert "def f(x: int) -> int:" in model.requests[1].messages[-1].content


def test_an_own_function_that_raises_is_shown_with_its_line():
    agent, model = scripted("def f(x):\n    return x / 0", "def f(x):\n    return x * 2")
    assert double(agent)(4) == 8
    shown = model.requests[1].messages[-1].content
    assert "f was called with the inputs and raised:" in shown
    assert "return x / 0" in shown


def test_an_own_function_with_a_wrong_value_is_told_so():
    agent, model = scripted("def f(x):\n    return str(x)", "def f(x):\n    return x * 2")
    assert double(agent)(4) == 8
    assert "expected int, got str '4'" in model.requests[1].messages[-1].content


def with_examples(agent):
    @agent.task(examples=[(((3,), {}), 6)])
    def f(x: int) -> int:
        """Double it.

        >>> f(2)
        4
        >>> f(0)  # doctest: +SKIP
        17
        """

    return f


def test_a_failing_doctest_example_is_fed_back_with_call_expected_and_got():
    agent, model = scripted("def f(x):\n    return x + 1", "def f(x):\n    return x * 2")
    assert with_examples(agent)(10) == 20
    shown = model.requests[1].messages[-1].content
    assert "f(2)" in shown
    assert "4" in shown
    assert "3" in shown


def test_a_failing_given_example_is_fed_back():
    agent, model = scripted("def f(x):\n    return 4", "def f(x):\n    return x * 2")
    assert with_examples(agent)(10) == 20
    assert "f(3)" in model.requests[1].messages[-1].content


def test_an_example_that_raises_shows_the_agents_line():
    agent, model = scripted("def f(x):\n    return [][x]", "def f(x):\n    return x * 2")
    assert with_examples(agent)(10) == 20
    assert "return [][x]" in model.requests[1].messages[-1].content


def test_an_example_is_not_met_by_ending_the_task_inside_it():
    agent, model = scripted("def f(x):\n    task_success(1)", "def f(x):\n    return x * 2")
    assert with_examples(agent)(10) == 20
    assert "ended the task" in model.requests[1].messages[-1].content


def test_a_function_that_changes_its_arguments_does_not_spoil_the_examples():
    agent, _ = scripted("def f(items):\n    items.append(1)\n    return len(items)")
    kept = [5]

    @agent.task(examples=[(((kept,), {}), 2), (((kept,), {}), 2)])
    def f(items: list[int]) -> int: ...

    assert f([1, 2]) == 3
    assert kept == [5]


def test_examples_are_in_the_prompt():
    agent, model = scripted("task_success(1)")
    with_examples(agent)(1)
    prompt = model.requests[0].messages[1].content
    assert ">>> f(2)" in prompt
    assert "f(3) == 6" in prompt


def test_a_check_sees_value_and_inputs_and_its_message_reaches_the_agent():
    agent, model = scripted("task_success(1)", "task_success(8)")

    def even(value, inputs):
        return None if value == inputs.x * 2 else f"{value} is not twice {inputs.x}"

    assert double(agent, checks=[even])(4) == 8
    assert "1 is not twice 4" in model.requests[1].messages[-1].content


def test_a_check_that_says_false_or_raises_refuses_the_value():
    agent, model = scripted("task_success(1)", "task_success(2)", "task_success(3)")

    def not_one(value, inputs):
        return value != 1

    def not_two(value, inputs):
        if value == 2:
            raise ValueError("two is taken")

    assert double(agent, checks=[not_one, not_two])(4) == 3
    assert "does not pass not_one" in model.requests[1].messages[-1].content
    assert "ValueError: two is taken" in model.requests[2].messages[-1].content


def test_checks_hold_for_an_own_function_too():
    agent, model = scripted("def f(x):\n    return 1", "def f(x):\n    return 8")
    assert double(agent, checks=[lambda value, inputs: value == 8])(4) == 8
    assert "does not pass" in model.requests[1].messages[-1].content


def test_setup_code_runs_before_the_first_turn_in_the_same_place():
    agent, model = scripted("task_success(y)")
    assert double(agent, setup="y = x + 1\nprint('ready')")(4) == 5
    prompt = model.requests[0].messages[1].content
    assert "y = x + 1" in prompt
    assert "ready" in prompt


def test_setup_code_that_fails_fails_the_task_before_any_model_is_asked():
    agent, model = scripted("task_success(1)")
    with pytest.raises(TaskFail, match=r"(?s)setup code of task 'f' failed.*undefined_fn"):
        double(agent, setup="undefined_fn()")(4)
    assert model.requests == []


def test_a_run_records_everything():
    reply = Reply(
        actions=(python_action("task_success(1)"),), usage=Usage(requests=1, input_tokens=5, output_tokens=2)
    )
    agent = Agent(name="bob", model=ScriptedModel([reply]))
    run = double(agent).run(4)
    assert isinstance(run, Run)
    assert (run.value, run.ok, run.agent, run.task, run.turns) == (1, True, "bob", "f", 1)
    assert (run.usage.tokens, run.cost, run.commit) == (7, 0.0, None)
    assert [type(event).__name__ for event in run.events] == ["TaskStartEvent", "ActionEvent", "SuccessEvent"]
    assert {event.run_id for event in run.events} == {run.run_id}
    assert events(run) == list(run.events)


def test_handlers_get_events_and_tokens_as_they_happen():
    agent, _ = scripted("task_success(1)")
    seen, tokens = [], []
    run = double(agent).run(4, on_event=seen.append, on_token=tokens.append)
    assert tuple(seen) == run.events
    assert "".join(tokens) == "```python\ntask_success(1)\n```"
    assert all(isinstance(token, Token) and (token.task, token.turn) == ("f", 1) for token in tokens)


def test_an_error_in_a_handler_is_the_hosts_own():
    agent, _ = scripted("task_success(1)")

    def broken(event):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        double(agent)(4, on_event=broken)


def test_an_async_handler_is_refused_for_a_sync_task():
    agent, model = scripted("task_success(1)")

    async def handler(event): ...

    with pytest.raises(DefinitionError, match="on_event=handler is async"):
        double(agent)(4, on_event=handler)
    assert model.requests == []


def test_using_sets_call_time_keywords_for_later_calls():
    agent, _ = scripted("task_success(1)", "task_success(1)")
    seen = []
    task = double(agent)
    task.using(on_event=seen.append)(4)
    assert isinstance(seen[0], TaskStartEvent)
    count = len(seen)
    task(4)
    assert len(seen) == count
    with pytest.raises(TypeError, match="colour"):
        task.using(colour="red")


def test_a_budget_at_the_call_replaces_the_agents():
    agent, _ = scripted("1", "2", "task_success(1)", budget=Budget(calls=1))
    with pytest.raises(BudgetExceeded, match="1 calls"):
        double(agent)(4)
    assert double(agent)(4, budget=Budget(calls=5)) == 1


def test_a_task_has_the_functions_face():
    agent, _ = scripted()
    task = double(agent)
    assert (task.__name__, task.__doc__) == ("f", "Double it.")
    assert list(inspect.signature(task).parameters) == ["x"]
    assert not hasattr(task, "__wrapped__")


def test_a_task_decorator_takes_a_primer_in_three_ways():
    for decorate in (
        lambda agent: agent.task("be quick"),
        lambda agent: agent.task(primer="be quick"),
        lambda agent: agent.task("be quick", reuse=False),
    ):
        agent, model = scripted("task_success(1)")

        @decorate(agent)
        def f() -> int: ...

        assert f() == 1
        told = model.requests[0].messages[1].content
        assert told.startswith("The task:\n```python\ndef f() -> int:\n")
        assert told.endswith("\n\nbe quick")


def test_local_annotations_resolve_in_every_decorator_form():
    class Point:
        pass

    agent, _ = scripted("task_success(p)", "task_success(p)")

    @agent.task
    def f(p: Point) -> Point: ...

    @agent.task("primer")
    def g(p: Point) -> Point: ...

    point = Point()
    assert f(point) is point
    assert g(point) is point


def test_a_registration_after_the_task_counts_for_the_next_call():
    agent, _ = scripted("task_success(helper())")

    @agent.task
    def f() -> int: ...

    @agent.fn
    def helper() -> int:
        return 3

    assert f() == 3


def test_a_returned_function_can_be_called_by_the_host():
    agent, _ = scripted("def twice(n):\n    return n * factor\nfactor = 2\ntask_success(twice)")

    @agent.task
    def make() -> Callable[[int], int]: ...

    twice = make()
    assert [twice(n) for n in (1, 2)] == [2, 4]


def test_reuse_runs_kept_code_and_asks_the_model_when_it_fails():
    agent, model = scripted(
        "import math",
        "def f(x):\n    assert x < 10\n    return math.floor(x * 2)",
        "def f(x):\n    return x * 3",
    )
    task = double(agent, reuse=True)
    assert task(4) == 8
    assert task(5) == 10
    assert len(model.requests) == 2
    run = task.run(20)
    assert run.value == 60
    assert [e.message.splitlines()[0] for e in run.events if isinstance(e, SystemNoteEvent)] == [
        "The code kept from an earlier call did not solve this one; the model is asked."
    ]
    assert task(1) == 3
    assert len(model.requests) == 3


def test_kept_code_is_dropped_when_the_registrations_change():
    agent, model = scripted("def f(x):\n    return 1", "def f(x):\n    return 2")
    task = double(agent, reuse=True)
    assert task(4) == 1
    agent.fn(len, name="size")
    assert task(4) == 2
    assert len(model.requests) == 2


def test_map_keeps_order():
    agent = Agent(model=ScriptedModel(lambda messages: "```python\ntask_success(x * 2)\n```"))
    task = double(agent)
    assert task.map(range(10), max_workers=4) == [2 * n for n in range(10)]
    with ThreadPoolExecutor(2) as pool:
        assert task.map(range(3), executor=pool) == [0, 2, 4]


def test_map_raises_the_first_failure():
    agent = Agent(model=ScriptedModel(lambda messages: "```python\ntask_fail(str(x))\n```"))
    with pytest.raises(TaskFail, match=r"^0$"):
        double(agent).map(range(3))


def test_eight_threads_calling_one_task_get_their_own_answers():
    agent = Agent(model=ScriptedModel(lambda messages: "```python\ny = x\ny * 2\ntask_success(y * 2)\n```"))
    task = double(agent)
    answers: dict[int, int] = {}
    start = threading.Barrier(8)

    def call(n):
        start.wait()
        for k in range(5):
            answers[n * 10 + k] = task(n * 10 + k)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n * 10 + k: 2 * (n * 10 + k) for n in range(8) for k in range(5)}


async def test_a_sync_task_works_inside_a_running_event_loop():
    agent, _ = scripted("task_success(x)", "task_success(x)")
    task = double(agent)
    assert task(4) == 4
    assert (await task.arun(5)).value == 5


# -- state -----------------------------------------------------------------------------------


def test_a_live_state_keeps_variables_from_task_to_task():
    agent, model = scripted("y = x\ntask_success(1)", "task_success(y)", state=Live())
    task = double(agent)
    task(4)
    assert task(9) == 4
    assert "y: int = 4" in model.requests[1].messages[1].content
    assert dict(agent.state) == {"y": 4}


def test_inputs_are_not_kept_unless_bound_anew():
    agent, _ = scripted("task_success(x)", "x = 7\ntask_success(x)")
    state = Live({"other": 1})
    task = double(agent)
    task(4, state=state)
    assert dict(state) == {"other": 1}
    task(4, state=state)
    assert dict(state) == {"other": 1, "x": 7}


def test_an_input_does_not_overwrite_a_variable_of_the_same_name():
    agent, _ = scripted("task_success(x)")
    state = Live({"x": "kept"})
    assert double(agent)(4, state=state) == 4
    assert dict(state) == {"x": "kept"}


def test_deleting_a_variable_counts():
    agent, _ = scripted("del old\ntask_success(1)")
    state = Live({"old": 1})
    double(agent)(4, state=state)
    assert dict(state) == {}


def test_what_an_action_bound_before_it_failed_is_kept():
    agent, _ = scripted("a = 1\nb = 1 / 0", "task_fail('no')")
    state = Live()
    with pytest.raises(TaskFail):
        double(agent)(4, state=state)
    assert dict(state) == {"a": 1}


def test_the_cache_lives_with_the_state_and_without_one_for_a_task():
    agent, _ = scripted(
        "cache['n'] = x\ntask_success(1)", "task_success(cache['n'])", "task_success(len(cache))"
    )
    state = Live()
    task = double(agent)
    task(4, state=state)
    assert task(9, state=state) == 4
    assert state.cache == {"n": 4}
    assert task(9, state=None) == 0


def test_the_events_of_a_state_are_those_of_all_its_tasks():
    agent, _ = scripted("task_success(1)", "task_success(1)", state=Live())
    task = double(agent)
    runs = [task.run(1), task.run(2)]
    assert events(agent.state) == [event for run in runs for event in run.events]


def test_calls_sharing_a_state_at_once_keep_each_others_variables():
    state = Live()

    def code(messages):
        x = messages[1].content.rsplit("x: int = ", 1)[1].split()[0]
        return f"```python\nv{x} = x\ntask_success(x)\n```"

    agent = Agent(model=ScriptedModel(code), state=state)
    assert double(agent).map(range(20), max_workers=8) == list(range(20))
    assert {name: state[name] for name in state if name.startswith("v")} == {f"v{n}": n for n in range(20)}


# -- bad input -------------------------------------------------------------------------------


def test_an_argument_of_the_wrong_type_is_refused_before_any_model_is_asked():
    agent, model = scripted("task_success(1)")
    with pytest.raises(InputError, match="x: expected int, got str 'four'"):
        double(agent)("four")
    with pytest.raises(TypeError, match="missing"):
        double(agent)()
    assert model.requests == []


def test_a_task_with_a_body_is_refused():
    agent = Agent()

    with pytest.raises(DefinitionError, match="empty"):

        @agent.task
        def f() -> int:
            return 1


def test_a_method_is_refused():
    agent = Agent()
    with pytest.raises(DefinitionError, match=r"Box\.f' is a method"):

        class Box:
            @agent.task
            def f(self) -> int: ...


def test_what_is_no_function_or_a_task_already_is_refused():
    agent = Agent()
    with pytest.raises(DefinitionError, match="takes a function"):
        agent.task(len)
    with pytest.raises(DefinitionError, match="is a task already"):
        agent.task(double(agent))


def test_an_async_check_is_refused():
    async def check(value, inputs): ...

    with pytest.raises(DefinitionError, match="'check' is async"):
        double(Agent(), checks=[check])


def test_examples_of_the_wrong_form_are_refused():
    with pytest.raises(DefinitionError, match=r"\(\(args, kwargs\), expected\)"):
        double(Agent(), examples=[(1, 2)])


def test_a_model_that_never_finishes_times_out():
    agent = Agent(model=ScriptedModel(lambda messages: "```python\n1 / 0\n```"), max_iterations=3)
    with pytest.raises(TaskTimeout, match=r"(?s)not finished in 3 turns.*ZeroDivisionError") as caught:
        double(agent)(4)
    assert caught.value.run.turns == 3


def test_an_empty_completion_and_a_cut_one_execute_nothing_and_the_task_goes_on():
    cut = Reply(text="```python\nstate_changed = 1\n", truncated=True)
    agent = Agent(model=ScriptedModel(["", cut, "```python\ntask_success('state_changed' in dir())\n```"]))

    @agent.task
    def f() -> bool: ...

    assert f() is False


def test_code_that_runs_too_long_is_ended_and_told():
    agent, model = scripted("while True: pass", "task_success(1)", timeout_seconds=0.3)
    assert double(agent)(4) == 1
    assert "ran longer than 0.3 s" in model.requests[1].messages[-1].content


def test_a_function_that_was_deleted_again_does_not_finish_the_task():
    agent, _ = scripted("def f(x):\n    return 1\ndel f", "task_success(2)")
    assert double(agent)(4) == 2


def test_a_run_has_the_code_of_the_function_that_solved_it():
    agent, _ = scripted("import math\nprint(x)", "def f(x):\n    return math.floor(x)")
    assert double(agent).run(4).code == "import math\ndef f(x):\n    return math.floor(x)"


def test_a_hostile_text_reaches_the_host_as_a_plain_string():
    agent, _ = scripted("class S(str):\n    def __len__(self): return 1 / 0\ntask_fail(S('no'))")
    with pytest.raises(TaskFail) as caught:
        double(agent)(4)
    assert type(caught.value.message) is str


def test_a_hostile_repr_in_an_example_is_met_inside_the_limits():
    agent, model = scripted(
        "class V:\n    def __repr__(self):\n        while True: pass\n    __eq__ = __repr__\n"
        "def f(x):\n    return V()",
        "def f(x):\n    return x * 2",
        timeout_seconds=0.3,
    )
    assert with_examples(agent)(10) == 20
    assert len(model.requests) == 2
