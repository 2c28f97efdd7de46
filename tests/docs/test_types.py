"""The programs that a newcomer copies pass the type-checkers at their strictest, as they stand.

A program is one or more blocks of a page: a block that uses names of those before it goes on with them. It is
checked in a file of its own, its code in the lines that it has in the page.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agex import Task

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/quickstart.md",
    *(f"docs/jobs/{page.name}" for page in sorted((ROOT / "docs/jobs").glob("*.md"))),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"<!-- reply\n.*?-->|^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
IGNORE = re.compile(r"#\s*(type|pyright|mypy)\s*:\s*(ignore|basic|disable)")

OF_A_CALL = set(inspect.signature(Task.using).parameters) - {"self"}


def blocks_of(page: str) -> Iterator[tuple[int, str]]:
    """Yield the Python blocks of a page, each with the number of lines above it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        if block["code"] is not None:
            yield text.count("\n", 0, block.start("code")), block["code"]


def programs_of(page: str) -> list[str]:
    """Return the programs of a page, each with blank lines where the page has other things."""
    programs: list[str] = []
    for above, code in blocks_of(page):
        if programs and free_names(code) & bound_names(programs[-1]):
            programs[-1] += "\n" * (above - programs[-1].count("\n")) + code
        else:
            programs.append("\n" * above + code)
    return programs


def bound_names(code: str) -> set[str]:
    """Return the names that a program defines, at whatever depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def free_names(code: str) -> set[str]:
    """Return the names that a block uses and does not define."""
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    return used - bound_names(code) - set(dir(builtins))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """Write the programs; return where each came from."""
    folder = tmp_path_factory.mktemp("programs")
    found = {path: str(path.relative_to(ROOT)) for path in EXAMPLES}
    for page in PAGES:
        for number, program in enumerate(programs_of(page), 1):
            file = folder / f"{Path(page).stem.lower()}_{number}.py"
            file.write_text(program, encoding="utf-8")
            found[file] = page
    return found


def test_the_programs_of_a_page_are_found_with_the_lines_of_the_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    programs = programs_of("README.md")
    assert len(programs) == 2
    for program in programs:
        for number, line in enumerate(program.splitlines()):
            assert line in ("", readme[number])
    assert len(programs_of("docs/quickstart.md")) == 3


def test_a_block_that_uses_a_name_of_the_block_before_goes_on_with_it() -> None:
    assert free_names("print(agent.name, len(x))\nx = 1") & bound_names("agent = 1") == {"agent"}
    assert free_names("from agex import Agent\nagent = Agent()") == set()


def test_no_program_asks_a_checker_to_look_away(files: dict[Path, str]) -> None:
    found = [
        f"{origin}:{number}: {line.strip()}"
        for file, origin in files.items()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if IGNORE.search(line)
    ]
    assert found == []


def test_settings_of_a_call_are_given_where_a_checker_sees_them() -> None:
    pages = [
        str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    ]
    sources = [(page, above, code) for page in pages for above, code in blocks_of(page)]
    sources += [(str(path.relative_to(ROOT)), 0, path.read_text(encoding="utf-8")) for path in EXAMPLES]
    found = [
        f"{origin}:{above + node.lineno}: {ast.unparse(node)}"
        for origin, above, code in sources
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and is_call_of_a_task(node, tasks_of(code))
        if OF_A_CALL & {keyword.arg for keyword in node.keywords}
    ]
    assert found == []


def tasks_of(code: str) -> set[str]:
    """Return the names of the tasks that a program declares."""
    return {
        node.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if any(re.search(r"\.task\b", ast.unparse(decorator)) for decorator in node.decorator_list)
    }


def is_call_of_a_task(node: ast.Call, tasks: set[str]) -> bool:
    called = ast.unparse(node.func)
    name, _, method = called.partition(".")
    return name in tasks and method in ("", "run", "arun", "start")


@pytest.mark.slow
def test_the_programs_pass_mypy_strict(files: dict[Path, str], pytestconfig: pytest.Config) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    settings = ["--strict", "--config-file=", f"--cache-dir={cache.mkdir('mypy-strict')}"]
    shape = ["--output=json", "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *settings, *shape, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    said = [json.loads(line) for line in done.stdout.splitlines()]
    origins = {str(path): origin for path, origin in files.items()}
    assert [
        f"{origins.get(str(ROOT / one['file']), one['file'])}:{one['line']}: {one['message']} [{one['code']}]"
        for one in said
    ] == []
    assert done.returncode == 0


@pytest.mark.slow
def test_the_programs_pass_pyright_strict(files: dict[Path, str], tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    settings = {"typeCheckingMode": "strict", "include": [str(file) for file in files]}
    config.write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--project", str(config), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    origins = {str(path): origin for path, origin in files.items()}
    assert [
        f"{origins.get(one['file'], one['file'])}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in report["generalDiagnostics"]
    ] == []
    assert report["summary"]["filesAnalyzed"] == len(files)
    assert done.returncode == 0
