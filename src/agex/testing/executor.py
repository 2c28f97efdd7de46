"""The conformance suite of executors: every isolation level gives the results of this process."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Self

from agex.files import Workspace, connect_fs
from agex.isolation import Executor, GuestSession, InProcessExecutor, Python
from agex.sandbox import Limits, Policy, Result

__all__ = ["check_executor"]

_SECONDS = 5.0
_SHORT = 0.3
"""The limit of what is to run into it."""


@dataclasses.dataclass
class Point:
    """A class of the host whose instances cross."""

    x: int
    y: int = 0

    def moved(self, by: int) -> Point:
        """Return a point further on."""
        return Point(self.x + by, self.y)


class ShopError(ValueError):
    """An error of a host library."""


class Shop:
    """A live object of the host."""

    def __init__(self) -> None:
        self.stock = {"pear": 2}
        self.visits = 0
        self.secret = "s"  # noqa: S105 - excluded, and that is what is tested

    def take(self, name: str, count: int = 1) -> int:
        """Take some of the stock, and say what is left."""
        if self.stock.get(name, 0) < count:
            raise ShopError(f"not enough of {name}")
        self.stock[name] -= count
        return self.stock[name]

    def aisle(self) -> Aisle:
        """Return a live object of its own."""
        return Aisle(self)

    def burn(self) -> None:
        """Lose all; not for guests."""
        self.stock.clear()

    def __len__(self) -> int:
        return sum(self.stock.values())

    def __enter__(self) -> Self:
        self.visits += 1
        return self

    def __exit__(self, *error: object) -> None:
        self.visits += 10


class Aisle:
    """A class that no registration names; it is reached through a registered object."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def names(self) -> list[str]:
        """Return what stands here."""
        return sorted(self._shop.stock)


class _World:
    """A host's side, fresh for each program."""

    def __init__(self) -> None:
        self.shop = Shop()
        self.ended: list[Any] = []
        self.files = _workspace()
        self.policy = policy = Policy.default()
        policy.cls(Point)
        policy.module(self.shop, name="shop", exclude=["_*", "burn", "secret"])
        for function in (double, fail, fail_oddly, apply, tell, make_adder):
            policy.fn(function)

    def session(
        self, executor: Executor, variables: Mapping[str, Any], seconds: float, python: Python = "guarded"
    ) -> GuestSession:
        limits = Limits(seconds=seconds, output_chars=2_000)
        session = executor.session(
            self.policy, limits, variables, classes=[Point], files=self.files, python=python
        )

        def finish(value: Any) -> None:
            """End the run."""
            if value == "wrong":
                raise TypeError("expected something else")
            self.ended.append(value)
            session.stop(_End(value))

        session.bind("finish", finish)
        session.bind("inputs", SimpleNamespace(**variables))
        return session


class _End(BaseException):
    """How a host function ends a run."""


def _workspace() -> Workspace:
    files = connect_fs(max_size_mb=1)
    files.write("in.csv", "id,value\n1,10\n2,20\n")
    files.write("tools/text.py", "def up(s):\n    return s.upper()\n\nclass Box:\n    size = 3\n")
    return files


def double(x: Any) -> Any:
    """Return twice as much."""
    return x * 2


def fail(text: str) -> None:
    """Raise what guest code can catch."""
    raise ValueError(text)


def fail_oddly(text: str) -> None:
    """Raise what only the host has a class for."""
    raise ShopError(text)


def apply(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of guest code."""
    return function(*args, **kwargs)


def tell(text: str) -> None:
    """Print where the guest prints."""
    print(text)  # noqa: T201 - what is tested


def make_adder(n: int) -> Callable[[int], int]:
    """Return a host function."""
    return lambda x: x + n


_PROGRAMS: Mapping[str, Mapping[str, str | list[str]]] = {
    "values": {
        "values of builtin types": "x = [1, 2.5, 'ü', b'\\x00', None, True, (1,), {2}, {'a': [1j]}]; x",
        "large integers": "2 ** 3000",
        "dates and decimals": "import datetime, decimal\n[datetime.date(2020, 1, 2), decimal.Decimal('1.10')]",
        "variables from run to run": ["a = [1]", "b = a\nb.append(2)", "a, a is b"],
        "names of an earlier run in a function": ["def f(): return n", "n = 3\nf()"],
        "definitions": "def f(a: int, b=2, *, c='x') -> int:\n    'Doc.'\n    return a\nclass C: pass",
        "inputs by attribute": "inputs.rows, inputs.rows is rows",
        "a generator across runs": ["def g():\n    yield 1\n    yield 2\nit = g()\nnext(it)", "next(it)"],
        "a class across runs": ["class C:\n    def __init__(self): self.v = 1", "c = C()\nc.v += 1", "c.v"],
        "echo of the guest's own repr": "class C:\n    def __repr__(self): return 'me'\nC()",
        "an endless repr": "class C:\n    def __repr__(self):\n        while True: pass\nx = C()",
    },
    "errors and printing": {
        "an error with its frames": "def f(x):\n    return 1 / x\n\ndef g(x):\n    return f(x)\n\ng(0)",
        "an error of the guest's own class": "class Mine(KeyError):\n    pass\nraise Mine('k', 2)",
        "an error from an error": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('after') from e",
        "what is refused": "().__class__.__base__.__subclasses__()",
        "an import that is refused": "import os",
        "syntax": "x = = 1",
        "printing": "for i in range(3): print(i)\nprint('a', 'b', sep='-', end='')",
        "printing more than is kept": "for i in range(1000): print('line', i)",
        "printing before an error": "print('before')\n1 / 0",
    },
    "functions of the host": {
        "a function of the host": "double(21), double('ab'), double(x=[1])",
        "its error, caught": "try:\n    fail('no')\nexcept ValueError as e:\n    r = str(e)\nr",
        "its error, not caught": "def f():\n    fail('no')\nf()",
        "an error of a class of the host": "try:\n    fail_oddly('no')\nexcept ValueError as e:\n    r = type(e).__name__, str(e)\nr",
        "the same, not caught": "fail_oddly('no')",
        "wrong arguments": "double(1, 2)",
        "printing by the host": "print('a')\ntell('b')\nprint('c')",
        "the host calls the guest": "seen = []\ndef f(a, *, b):\n    seen.append(a)\n    return a + b\n(apply(f, 1, b=2), seen)",
        "the guest calls back through the host": "def f(x):\n    return double(x) + 1\napply(f, 4)",
        "an error in what the host calls": "def f():\n    return {}['k']\ntry:\n    apply(f)\nexcept KeyError as e:\n    r = e.args\nr",
        "a lambda and a builtin for the host": "[apply(lambda a: a * 3, 2), apply(len, 'abc')]",
        "a bound method for the host": "class C:\n    n = 5\n    def m(self, x): return self.n + x\napply(C().m, 1)",
        "a function that the host returns": "add = make_adder(5)\nadd(1), [add(x) for x in (1, 2)]",
        "an instance both ways": "p = Point(1, y=2)\nq = double([p])\np.moved(3), q",
    },
    "live objects": {
        "methods of a live object": "shop.take('pear'), shop.take(count=1, name='pear')",
        "attributes of a live object": "shop.stock['pear'], shop.visits, len(shop)",
        "writing to a live object": ["shop.visits = 7", "shop.visits"],
        "a live object's error": "shop.take('fig')",
        "a live object from a live object": "shop.aisle().names()",
        "a live object as a context": "with shop as s:\n    a = s is shop\n(a, shop.visits)",
        "a member of a live object that is excluded": "shop.burn()",
        "an attribute of a live object that is excluded": "shop.secret",
        "a private attribute of a live object": "shop.aisle()._shop",
        "a method that is not there": "shop.sell()",
    },
    "the end of a run": {
        "ending the run": "print('a')\nfinish([1, 2])\nprint('never')",
        "ending it is not caught": "try:\n    finish(1)\nexcept BaseException:\n    print('never')\nfinally:\n    print('never')",
        "ending it with what is refused": "try:\n    finish('wrong')\nexcept TypeError as e:\n    r = str(e)\nr",
    },
    "files": {
        "reading a file": "with open('in.csv') as f:\n    r = [line.strip() for line in f]\nr",
        "writing a file": [
            "import os\nos.makedirs('a')\nwith open('a/b.txt', 'w') as f:\n    n = f.write('ü')",
            "open('a/b.txt', 'rb').read()",
            "import pathlib\npathlib.Path('a/b.txt').read_text()",
        ],
        "a directory that is made for a file": "with open('new/b.txt', 'w') as f:\n    n = f.write('b')",
        "adding to a file": ["open('in.csv', 'a').write('3,30')", "open('in.csv').read()"],
        "a file that is not there": "open('nope.txt')",
        "a file that is there": "open('in.csv', 'x')",
        "a path that leads out": "open('../../etc/passwd')",
        "a path of the machine": "open('/etc/passwd')",
        "a path that is no text": "import os\ntry:\n    os.stat(b'in.csv')\nexcept TypeError:\n    r = 'refused'\nr",
        "a name that is too long": "open('x' * 300)",
        "a path of a class of the guest's": "class P:\n    def __fspath__(self): return 'in.csv'\nopen(P()).read()",
        "what is known of a file": "import os\ns = os.stat('in.csv')\ns.st_size, os.path.isdir('tools'), os.listdir('/')",
        "a directory that holds something": "import os\nos.rmdir('tools')",
        "a pattern": "import glob\nglob.glob('**/*.py', recursive=True)",
        "copies of files": "import shutil\nshutil.copytree('tools', 'more')\nopen('more/text.py').read()[:6]",
        "an archive": "import zipfile\nwith zipfile.ZipFile('z.zip', 'w') as z:\n    z.write('in.csv')\nzipfile.ZipFile('z.zip').read('in.csv')",
        "more than fits": "open('big', 'wb').write(bytes(2 << 20))",
        "a link": "import os\nos.symlink('in.csv', 'link')",
        "a module of the workspace": "from tools import text\ntext.up('a'), text.Box.size",
        "a module that was written before": [
            "open('m.py', 'w').write('x = [1]')",
            "import m\nm.x.append(2)\nm.x",
        ],
        "a file that stays open": ["f = open('late', 'w')\nf.write('x')", "f.close()\nopen('late').read()"],
        "the working directory": ["import os\nos.chdir('tools')", "os.getcwd(), open('text.py').read()[:6]"],
    },
    "files that go": {
        "moving and removing": "import os\nos.mkdir('b')\nos.rename('in.csv', 'b/c.csv')\nos.remove('tools/text.py')\nos.rmdir('tools')\nos.listdir()",
    },
}
"""The programs: a session for each topic, in which later sources see the variables of earlier ones."""

_LATE: Mapping[str, str] = {
    "an endless loop": "while True: pass",
    "a loop that catches everything": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "sleep": "import time\ntime.sleep(60)",
    "an endless function called by the host": "def f():\n    while True: pass\napply(f)",
}
"""Programs that must end at their deadline and leave the session usable."""


_OF_GUARDS = frozenset(
    {
        "what is refused",
        "an import that is refused",
        "ending it is not caught",
        "a directory that is made for a file",
        "a path that leads out",
        "a path of the machine",
        "a path that is no text",
        "more than fits",
        "a link",
        "what is known of a file",
        "the working directory",
    }
)
"""Programs whose outcome is that of the guards, or of files that are no real directory."""


def check_executor(make: Callable[[], Executor], *, python: Python = "guarded") -> None:
    """Prove that code runs at a level as it does in this process.

    ::

        def test_my_level_is_a_level():
            check_executor(MyExecutor)

    Args:
        make: makes the executor; what it makes is closed again.
        python: the interpreter of its code. With full Python, programs about guards are left out.

    Raises:
        AssertionError: with the program and what differs.
    """
    executor = make()
    try:
        for topic, programs in _PROGRAMS.items():
            _compare(executor, topic, list(_steps(programs, python)), python)
        for title, source in _LATE.items():
            _ends(executor, title, source, python)
        _functions(executor, python)
        _awaits(executor, python)
        _stops(executor, python)
    finally:
        executor.close()


def _variables() -> dict[str, Any]:
    return {"rows": [1, 2], "name": "n", "point": Point(1, 2)}


def _steps(programs: Mapping[str, str | list[str]], python: Python) -> Iterator[tuple[str, str]]:
    """Yield each source with what it is for."""
    for title, sources in programs.items():
        if python == "full" and title in _OF_GUARDS:
            continue
        for source in [sources] if isinstance(sources, str) else sources:
            yield title, source


def _compare(executor: Executor, topic: str, steps: list[tuple[str, str]], python: Python) -> None:
    sources = [source for _, source in steps]
    wanted = _seen(InProcessExecutor(), sources)
    found = _seen(executor, sources, python)
    for (title, source), theirs, ours in zip(steps, found, wanted, strict=True):
        for what, value in reversed(ours.items()):
            assert theirs[what] == value, (
                f"{topic}, {title!r}: the {what} of\n{source}\nmust be\n{value!r}\n"
                f"and at {executor.level!r} it is\n{theirs[what]!r}"
            )


def _seen(executor: Executor, sources: list[str], python: Python = "guarded") -> list[dict[str, Any]]:
    """Run sources in a session and return the result of each."""
    world = _World()
    session = world.session(executor, _variables(), _SECONDS, python)
    try:
        return [
            {
                **_told(session.run(source, filename=f"<run {number}>")),
                "definitions": sorted(session.defined),
                "variable r": session.look_up("r") if "r" in source else None,
                "signature": _signature(session.look_up("f")) if "f" in session.defined else None,
                "endings": list(world.ended),
                "files": _contents(world.files),
                "host's objects": (dict(world.shop.stock), world.shop.visits),
            }
            for number, source in enumerate(sources)
        ]
    finally:
        session.close()


def _contents(files: Workspace) -> dict[str, bytes]:
    """Return every file but archives, which have the time in them."""
    return {
        path: files.read(path)
        for path in files.list("/", recursive=True)
        if files.isfile(path) and not path.endswith(".zip")
    }


def _told(result: Result) -> dict[str, Any]:
    error = result.error
    return {
        "echo": result.echo,
        "output": result.stdout,
        "error": None if error is None else [cls.__name__ for cls in type(error).__mro__],
        "error's text": None if error is None else str(error),
        "traceback": result.traceback,
        "ending": None if result.stopped is None else result.stopped.args,
    }


def _signature(function: Any) -> str:
    return f"{function.__name__}{inspect.signature(function)} {function.__doc__}".replace("'int'", "int")


def _ends(executor: Executor, title: str, source: str, python: Python) -> None:
    session = _World().session(executor, _variables(), _SHORT, python)
    try:
        result = session.run(source)
        said = "" if result.error is None else str(result.error)
        assert "ran longer than 0.3 s" in said, (
            f"{title!r} must end with an error that says how long it ran, not with {result.error!r}"
        )
        assert session.run("1 + 1").echo == "2", f"After {title!r} the session must be of use again."
    finally:
        session.close()


def _functions(executor: Executor, python: Python) -> None:
    """Check that a function of the guest can be called by the host, also when its session is closed."""
    session = _World().session(executor, _variables(), _SECONDS, python)
    source = "calls = []\ndef f(x, by=2):\n    calls.append(x)\n    return [x * by, double(len(calls))]"
    session.run(source)
    function = session.look_up("f")
    assert session.is_guest_function(function), (
        "`is_guest_function` must know a function that `look_up` gave."
    )
    assert not session.is_guest_function(double), (
        "`is_guest_function` must not take a host's for the guest's."
    )
    assert function(3) == [6, 2], "A function of the guest must do what it does, called by the host."
    called = session.call(function, 3, by=3)
    assert called.value == [9, 4], f"`call` must give what a guest's function returns, not {called}"
    assert isinstance(session.call(function).error, TypeError), "`call` must give the error of a call."
    session.close()
    assert function(1)[0] == 2, "A function of the guest must work when its session is closed."


def _awaits(executor: Executor, python: Python) -> None:
    session = _World().session(executor, _variables(), _SECONDS, python)
    source = "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return double(x)\nawait f(4)"
    try:
        result = asyncio.run(session.arun(source))
        assert result.echo == "8", f"`arun` must allow `await` at the top level; it gives {result}"
        function = session.look_up("f")
        called = asyncio.run(session.acall(function, 5))
        assert called.value == 10, f"`acall` must await what an async function gives; it gives {called}"
    finally:
        session.close()


def _stops(executor: Executor, python: Python) -> None:
    """Check that a run can be ended from another thread."""
    world = _World()
    ending = _End("from outside")
    session: Any = None

    def interrupt() -> None:
        """Stands in for another thread: it does not end the run by raising."""
        session.interrupt(ending)

    world.policy.fn(interrupt)
    session = world.session(executor, _variables(), _SECONDS, python)
    try:
        result = session.run("interrupt()\nwhile True: pass")
        assert result.stopped is ending, f"`interrupt` must end the run with what it is given, not {result}"
        assert session.run("1 + 1").echo == "2", "After `interrupt` the session must be of use again."
    finally:
        session.close()
