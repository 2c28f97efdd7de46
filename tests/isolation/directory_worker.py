"""Workers of full Python with a directory, and what tests do in them."""

from __future__ import annotations

import ast
import random
import textwrap

from agex.files import connect_fs
from agex.sandbox import Limits, Policy

__all__ = ["Worker", "content", "do_anything"]


class Worker:
    """A session of full Python over a workspace."""

    def __init__(self, executor, files, **limits):
        bounds = Limits(**{"seconds": 20.0, **limits})
        self.session = executor.session(Policy.default(), bounds, {}, files=files, python="full")

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.session.close()

    def run(self, source):
        """Run code that must not fail; return what it printed."""
        result = self.session.run(textwrap.dedent(source))
        assert result.error is None, result.traceback
        return result.stdout

    def error(self, source):
        """Run code that must fail; return the error's text."""
        result = self.session.run(textwrap.dedent(source))
        assert result.error is not None
        return f"{type(result.error).__name__}: {result.error}"


def content(files):
    """Return every file of a workspace, and every directory as None."""
    return {
        path: files.read(path) if files.isfile(path) else None for path in files.list("/", recursive=True)
    }


_LOOK = """
def look():
    import os
    found = {}
    for at, folders, names in os.walk("."):
        for name in folders:
            found[os.path.relpath(os.path.join(at, name), ".")] = None
        for name in names:
            path = os.path.join(at, name)
            found[os.path.relpath(path, ".")] = open(path, "rb").read()
    print(sorted(found.items()))
"""

_OPERATIONS = [
    "os.makedirs({a}, exist_ok=True)",
    "open({a}, 'w').write({text})",
    "open({a}, 'a').write({text})",
    "os.makedirs(os.path.dirname({a}) or '.', exist_ok=True); open({a}, 'w').write({text})",
    "os.remove({a})",
    "shutil.rmtree({a})",
    "os.rename({a}, {b})",
    "os.replace({a}, {b})",
    "shutil.copytree({a}, {b})",
    "os.truncate({a}, 1)",
    "shutil.move({a}, {b})",
    "os.link({a}, {b})",
]


def do_anything(executor, seed):
    """Do random things in a worker and in the host; compare its directory with the workspace after each."""
    chance = random.Random(seed)
    names = ["a", "b", "a/b", "a/b/c", "b/a", "c", "c/a/b", "d.txt", "b/d.txt"]
    files = connect_fs(type="virtual")
    for name in ("a/b/one.txt", "b/two.txt", "c", "d.txt"):
        files.write(name, name)
    with Worker(executor, files) as worker:
        worker.run(_LOOK + "import os, shutil")
        for turn in range(12):
            for _ in range(chance.randint(0, 4)):
                operation = chance.choice(_OPERATIONS).format(
                    a=repr(chance.choice(names)), b=repr(chance.choice(names)), text=repr(f"text {turn}")
                )
                worker.run(f"try:\n    {operation}\nexcept (OSError, shutil.Error):\n    pass")
            if chance.random() < 0.3:
                for name in chance.sample(names, 2):
                    try:
                        files.remove(name) if chance.random() < 0.5 else files.write(name, f"host {turn}")
                    except OSError:
                        continue
            shown = dict(ast.literal_eval(worker.run("look()")))
            assert shown == content(files)
