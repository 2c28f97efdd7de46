"""Raw Python in a worker reaches for what lies beside the things that its host registered.

Stopped by: isolation.kernel, isolation.worker.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import podman
import pytest
from canaries import CANARY, PROJECTS, main_script, reach
from hostile import attempt, raw

from agex.errors import DefinitionError
from agex.isolation import ContainerExecutor, KernelExecutor, ProcessExecutor
from agex.isolation.kernel import missing
from agex.sandbox import Limits, Policy

NO_PODMAN = pytest.mark.skipif(bool(podman.missing()), reason=f"no container engine: {podman.missing()}")
NO_KERNEL = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold here: {missing()}")
SDK = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # the Docker SDK's sockets


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with podman.service(tmp_path_factory.mktemp("podman")) as found:
        yield found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("kernel", marks=NO_KERNEL),
        pytest.param("container", marks=[NO_PODMAN, pytest.mark.slow, SDK]),
    ],
)
def walled(request):
    if request.param == "kernel":
        made = KernelExecutor()
    else:
        made = ContainerExecutor(request.getfixturevalue("address"))
    yield made
    made.close()


@pytest.fixture
def project(request, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = {*sys.modules}
    yield PROJECTS[request.param](tmp_path)
    for name in {*sys.modules} - before:
        del sys.modules[name]


@pytest.mark.parametrize("project", PROJECTS, indirect=True)
def test_what_lies_beside_a_registered_thing_is_not_reached(walled, project):
    assert any(CANARY in Path(path).read_text() for path in project.files)
    session = walled.session(project.policy, Limits(seconds=10.0), {})
    result = session.run(project.source)
    session.close()
    assert (result.echo, result.error) == (project.expected, None)
    assert attempt(
        walled, reach, project.files, project.modules, CANARY, policy=raw(reach, also=project.policy)
    ) == ("[]")


def test_what_lies_beside_the_main_script_is_not_reached(walled, request, tmp_path):
    setting = {}
    if walled.level == "container":
        setting = {"DOCKER_HOST": request.getfixturevalue("address")}
    program = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from canaries import reach
from hostile import attempt, raw
from agex.isolation import executor_of
from agex.sandbox import Limits, Policy

policy = Policy.default()
policy.cls(P)
executor = executor_of({walled.level!r})
print(executor.session(policy, Limits(), {{}}).run("P().twice").echo)
files = [{str(tmp_path)!r} + name for name in ("/main.py", "/.env", "/settings.py")]
print(attempt(executor, reach, files, ["settings", "main"], {CANARY!r}, policy=raw(reach, also=policy)))
""".replace("{", "{{").replace("}", "}}")
    assert main_script(tmp_path, program, {**os.environ, **setting}) == "12\n[]\n"


def test_the_repository_of_agex_does_not_appear(walled):
    root = Path(__file__).parents[2]
    names = (
        "pyproject.toml",
        "README.md",
        ".git",
        "tests/isolation/canaries.py",
        "src/agex/studio/page/tab.js",
    )
    files = [str(root / name) for name in names]

    def there(paths):
        return [path for path in paths if os.path.lexists(path)]

    assert attempt(walled, there, files) == "[]"


def test_no_global_of_its_module_crosses_with_a_class_but_those_that_it_names(tmp_path, monkeypatch):
    (tmp_path / "kept_apart.py").write_text(
        f"SECRET = '{CANARY}'\nRATE = 3\n\nclass P:\n    def go(self):\n        return RATE\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import kept_apart

    policy = Policy.default()
    policy.cls(kept_apart.P)
    executor = ProcessExecutor()

    def globals_of(cls):
        return sorted(k for k in cls.go.__globals__ if not k.startswith("__")), "kept_apart" in sys.modules

    session = executor.session(raw(globals_of, also=policy), Limits(seconds=5.0), {})
    assert session.run("P().go()").echo == "3"
    assert session.run("Raw.go(P)").echo == "(['RATE'], False)"
    session.close()
    executor.close()


def test_a_class_whose_globals_cannot_be_copied_is_refused_with_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "holds_a_file.py").write_text(
        "LOG = open(__file__)\n\nclass P:\n    def go(self):\n        return LOG.name[-3:]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import holds_a_file

    policy = Policy.default()
    policy.cls(holds_a_file.P)
    executor = ProcessExecutor()
    with pytest.raises(DefinitionError, match="register that module, too"):
        executor.session(policy, Limits(seconds=5.0), {})
    policy.module(holds_a_file)
    session = executor.session(policy, Limits(seconds=5.0), {})
    assert session.run("P().go()").echo == "'.py'"
    session.close()
    executor.close()
    holds_a_file.LOG.close()
