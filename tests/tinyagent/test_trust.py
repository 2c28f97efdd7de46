"""Code outside of this process does as at LOCAL, and no level stands in for another.

Stopped by: tinyagent, isolation.levels.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from agex.errors import ExecutionTimeout, IsolationUnavailable
from agex.testing import ScriptedModel
from agex.tinyagent import ExecutionLimits, PythonExecutor, TinyCodeAgent, tool, trust
from agex.tinyagent.trust import TrustLevel


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    (root / "inner").mkdir(parents=True)
    (root / "data.csv").write_text("id,value\n1,10\n2,20\n3,31.5\n", encoding="utf-8")
    (root / "inner" / "note.txt").write_text("inside", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("the-secret", encoding="utf-8")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "linked").symlink_to(tmp_path)
    return root


@pytest.fixture(params=["kernel", "process"])
def isolated(request, monkeypatch):
    """Stand for each isolation that ISOLATED may take."""
    monkeypatch.setitem(trust.LEVELS, TrustLevel.ISOLATED, (request.param,))
    return request.param


@pytest.fixture
def executor(isolated, root):
    made = PythonExecutor(["pandas", "numpy"], trust_level="isolated", working_directory=root)
    yield made
    made.close()


def test_the_result_says_which_isolation_held(isolated, executor):
    result = executor.run("final_answer(2 + 3)")
    assert (result.final_value, result.enforcement.isolation) == (5, isolated)


def test_variables_stay_and_are_given_back(executor):
    assert executor.run("rows = [1]\nframe = None").success
    result = executor.run("rows.append(2)\nprint(rows)")
    assert (result.output, dict(result.namespace)["rows"]) == ("[1, 2]", [1, 2])


def test_files_of_the_directory_are_read_by_all_who_read(executor):
    code = """
import csv, json
import pandas as pd, numpy as np
with open('data.csv', newline='') as file:
    rows = list(csv.DictReader(file))
mean = pd.read_csv('data.csv')['value'].mean()
array = np.genfromtxt('data.csv', delimiter=',', skip_header=1)
final_answer([len(rows), mean, array[:, 1].sum(), open('inner/note.txt').read()])
"""
    assert executor.run(code).final_value == [3, 20.5, 61.5, "inside"]


def test_a_whole_path_below_the_directory_is_fine(executor, root):
    assert (
        executor.run(f"final_answer(open({str(root / 'data.csv')!r}).readline())").final_value == "id,value\n"
    )


@pytest.mark.parametrize(
    "path", ["../secret.txt", "inner/../../secret.txt", "link.txt", "linked/secret.txt", "/etc/passwd", ""]
)
@pytest.mark.parametrize("how", ["open({!r}).read()", "pd.read_csv({!r})", "np.genfromtxt({!r})"])
def test_nothing_else_is_read(executor, path, how):
    result = executor.run(f"import pandas as pd, numpy as np\nprint({how.format(path)})")
    assert (result.success, "the-secret" in result.output) == (False, False)


@pytest.mark.parametrize(
    "code",
    [
        "open('new.txt', 'w')",
        "open('data.csv', 'a')",
        "open('data.csv', 'r+')",
        "import pandas as pd\npd.DataFrame().to_csv('new.csv')",
        "import os\nos.remove('data.csv')",
        "import os\nos.mkdir('new')",
        "import os\nos.rename('data.csv', 'new.csv')",
        "import os\nos.truncate('data.csv', 0)",
    ],
)
def test_nothing_is_written(executor, root, code):
    result = executor.run(code)
    assert "can be read here, not written" in result.error
    assert sorted(path.name for path in root.iterdir()) == ["data.csv", "inner", "link.txt", "linked"]
    assert (root / "data.csv").stat().st_size == 26


def test_code_that_hangs_is_killed_and_keeps_what_it_printed_and_had(isolated, root):
    limits = ExecutionLimits(timeout_seconds=0.5)
    executor = PythonExecutor(limits=limits, trust_level="isolated", working_directory=None)
    executor.run("a = [1]")
    result = executor.run("print('before')\nsum(range(10 ** 13))")
    assert (type(result.exception), result.timeout, result.output) == (ExecutionTimeout, True, "before")
    assert executor.run("final_answer(a)").final_value == [1]
    executor.close()


def test_an_answer_that_cannot_leave_names_its_class(executor):
    result = executor.run("class Box:\n    pass\nfinal_answer(Box())")
    assert (result.is_final, "Box" in result.error) == (False, True)
    assert executor.run("final_answer(1)").final_value == 1


def test_tables_and_functions_are_answers(isolated, root):
    code = (
        "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2]})\ndef twice(x): return x * 2\n"
        "final_answer((frame, twice))"
    )
    agent = TinyCodeAgent(
        model=ScriptedModel([f"```python\n{code}\n```"]), trust_level="isolated", extra_imports=["pandas"]
    )
    frame, twice = agent.run_sync("a", return_result=True).final_answer.value
    assert (frame.a.tolist(), twice(4)) == ([1, 2], 8)


def test_tools_signals_and_notes_work(isolated):
    calls = []

    @tool
    def calculate(x: int, y: int) -> int:
        """Add two numbers."""
        calls.append((x, y))
        return x + y

    code = (
        "uncertain('is it?')\nstore('k', [1])\nobserve('seen')\nmemory.fail('a way')\n"
        "final_answer(calculate(5, 3) + recall('k')[0])"
    )
    agent = TinyCodeAgent(
        model=ScriptedModel([f"```python\n{code}\n```"]), tools=[calculate], trust_level="isolated"
    )
    result = agent.run_sync("a", return_result=True)
    assert (result.output, calls, [str(one) for one in result.signals]) == (
        "9",
        [(5, 3)],
        ["[UNCERTAIN] is it?"],
    )
    assert (agent.memory.variables, agent.memory.observations) == ({"k": [1]}, ["seen"])
    assert agent.memory.failed_approaches == ["a way"]


def test_a_run_ends_its_worker(isolated, monkeypatch):
    closed = []
    close = PythonExecutor.close
    monkeypatch.setattr(PythonExecutor, "close", lambda self: closed.append(close(self)))
    agent = TinyCodeAgent(model=ScriptedModel(["```python\nfinal_answer(1)\n```"]), trust_level="isolated")
    assert (agent.run_sync("a"), closed) == ("1", [None])


def test_what_is_injected_crosses(executor):
    executor.inject("frame", pd.DataFrame({"a": np.arange(3)}))
    assert executor.run("final_answer(int(frame.a.sum()))").final_value == 3


def test_no_level_stands_in_for_one_that_does_not_hold(monkeypatch):
    def refuse(level):
        raise IsolationUnavailable(f"no {level} here")

    monkeypatch.setattr("agex.isolation.executor_of", refuse)
    model = ScriptedModel([])
    for level, told in (("isolated", "no kernel here; no process here"), ("sandboxed", "no container here")):
        with pytest.raises(IsolationUnavailable, match=f"TrustLevel.{level.upper()} .*{told}.*fall back"):
            TinyCodeAgent(model=model, trust_level=level).run_sync("a")
        with pytest.raises(IsolationUnavailable, match="does not fall back"):
            PythonExecutor(trust_level=level).run("x = 1")
    assert model.requests == []


def test_isolated_takes_a_process_where_the_kernel_lacks_the_walls_and_says_so(monkeypatch):
    monkeypatch.setattr("agex.isolation.lockdown.landlock.abi", lambda: 0)
    monkeypatch.setattr("agex.isolation.levels._made", {})
    executor = PythonExecutor(trust_level="isolated")
    result = executor.run("final_answer(1)")
    assert (result.final_value, result.enforcement.isolation) == (1, "process")
    executor.close()
    from agex.isolation import executor_of

    executor_of("process").close()
