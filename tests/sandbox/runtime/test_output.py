"""What programs say beside their results: standard streams, warnings and tracebacks, each the session's own.

Stopped by: sandbox.stdlib.sys_streams, sandbox.stdlib.warnings, sandbox.stdlib.traceback.
"""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
import warnings

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox
from agex.sandbox.runtime.output import echo_text


def printed(source: str, policy: Policy | None = None) -> str:
    result = Sandbox(policy).exec(source)
    assert result.error is None, result.traceback
    return result.stdout


AS_IN_PYTHON = {
    "a stream is written to": "import sys\nsys.stdout.write('a')\nsys.stdout.writelines(['b', 'c'])\nsys.stdout.flush()\nprint(sys.stdout.write(''))",
    "print to a stream": "import sys\nprint('a', file=sys.stdout)\nprint(sys.stdout.isatty(), sys.stdout.encoding)",
    "output is redirected": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f:\n  print('a')\nprint([f.getvalue()])",
    "one within another": "import contextlib, io\na, b = io.StringIO(), io.StringIO()\nwith contextlib.redirect_stdout(a):\n  print(1)\n  with contextlib.redirect_stdout(b): print(2)\n  print(3)\nprint([a.getvalue(), b.getvalue()])",
    "twice by the same": "import contextlib, io\na = io.StringIO()\nr = contextlib.redirect_stdout(a)\nwith r:\n  with r: print(1)\n  print(2)\nprint([a.getvalue()])",
    "errors are redirected": "import contextlib, io, sys\nwith contextlib.redirect_stderr(io.StringIO()) as f, contextlib.redirect_stdout(io.StringIO()) as g:\n  print('a', file=sys.stderr)\n  print('b')\nprint([f.getvalue(), g.getvalue()])",
    "an error ends it": "import contextlib, io\ntry:\n  with contextlib.redirect_stdout(io.StringIO()): 1 / 0\nexcept ZeroDivisionError: print('a')",
    "not what is no text": "import sys\ntry: sys.stdout.write(1)\nexcept TypeError as e: print(e)",
    "what an error says": "import traceback\ntry: 1 / 0\nexcept ZeroDivisionError as e: print(traceback.format_exception_only(e), traceback.format_exception_only(type(e), e))",
    "no error is handled": "import traceback\nprint([traceback.format_exc()])",
    "literals": "import ast\nprint(ast.literal_eval('[1, -2.5, (None, True), {\"a\": {1}}, b\"x\", 1 + 2j]'))",
    "no literal": "import ast\nfor text in ('f()', '1 +', '__import__(\"os\")'):\n  try: ast.literal_eval(text)\n  except (ValueError, SyntaxError) as e: print(type(e).__name__)",
    "nodes are none": "import ast\ntry: ast.literal_eval(5)\nexcept ValueError as e: print(e)",
    "a filter is one of": "import warnings\ntry: warnings.simplefilter('never')\nexcept (AssertionError, ValueError): print('no')",
}  # fmt: skip


@pytest.mark.parametrize("source", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_what_is_printed_is_what_python_prints(source):
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as real:
        exec(source, {"__name__": "__main__"})
    real.seek(0)

    assert printed(source) == real.read()


def test_both_streams_are_the_output_of_the_run(capsys):
    assert printed("import sys\nprint('a', file=sys.stderr)\nprint('b')") == "a\nb\n"
    assert capsys.readouterr() == ("", "")


def test_what_the_host_prints_for_a_guest_is_redirected_with_it():
    policy = Policy.default()
    policy.fn(lambda: print("host"), name="say")
    source = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f: say()\nprint([f.getvalue()])"
    assert printed(source, policy) == "['host\\n']\n"


def test_redirecting_ends_with_the_run():
    session = Sandbox().session()
    session.run("import contextlib, io\nf = io.StringIO()\nr = contextlib.redirect_stdout(f)\nr.__enter__()")

    result = session.run("print('seen')\nr.__exit__(None, None, None)\nprint('seen')")

    assert result.stdout == "seen\nseen\n"


@pytest.mark.parametrize(
    "call",
    ["traceback.print_exc()", "print(traceback.format_exc(), end='')"],
    ids=["print_exc", "format_exc"],
)
def test_a_traceback_is_that_of_an_error_that_ends_the_run(call):
    ended = Sandbox().exec("import traceback\ndef f(): {}['a']\nif 1:\n  f()")

    source = f"import traceback\ndef f(): {{}}['a']\ntry:\n  f()\nexcept KeyError: {call}"
    assert printed(source) == ended.traceback + "\n"


def test_a_traceback_shows_no_frame_of_the_host():
    policy = Policy.default()
    policy.fn(lambda: {}["a"], name="broken")
    text = printed("import traceback\ntry: broken()\nexcept KeyError: traceback.print_exc()", policy)
    assert text.count("File ") == 1
    assert text.endswith("KeyError: 'a'\n")


def test_what_the_host_handles_is_not_told():
    def handling(callback):
        try:
            return {}["secret"]
        except KeyError:
            return callback()

    policy = Policy.default()
    policy.fn(handling)
    source = """
import traceback
print(handling(traceback.format_exc), end="")
print(handling(lambda: traceback.format_exc()), end="")
"""
    assert printed(source, policy) == "NoneType: None\n" * 2


REFUSED = {
    "the buffer below": "import sys\nsys.stdout.buffer",
    "the real one below": "import sys\nsys.__stdout__",
    "a stream that is exchanged": "import sys, io\nsys.stdout = io.StringIO()",
    "a stream that is patched": "import sys\nsys.stdout.write = print",
    "a stream that is closed": "import sys\nsys.stdout.close()",
    "a target of one's own": "import contextlib\nclass A:\n  def write(self, text): pass\nwith contextlib.redirect_stdout(A()): print(1)",
    "warnings as errors": "import warnings\nwarnings.simplefilter('error')",
    "warnings of libraries": "import warnings\nwarnings.catch_warnings(record=True)",
    "the filters of the process": "import warnings\nwarnings.filters",
    "how warnings are shown": "import warnings\nwarnings.showwarning = print",
    "frames": "import traceback\ntraceback.walk_tb",
    "the stack": "import traceback\ntraceback.format_stack()",
    "part of a traceback": "import traceback\ntraceback.format_exc(limit=1)",
    "trees": "import ast\nast.NodeTransformer",
}  # fmt: skip


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_the_rest_is_refused(source):
    before = list(warnings.filters), sys.stdout, traceback.format_exc
    error = Sandbox().exec(source).error
    assert isinstance(error, SandboxError | AttributeError)
    assert before == (list(warnings.filters), sys.stdout, traceback.format_exc)


FILTERS = {
    "all": ("warnings.filterwarnings('ignore')", []),
    "by class": ("warnings.simplefilter('ignore', DeprecationWarning)", ["user"]),
    "by message": ("warnings.filterwarnings('ignore', message='US')", ["old"]),
    "by module": ("warnings.filterwarnings('ignore', module='other')", ["user", "old"]),
    "by line": ("warnings.simplefilter('ignore', lineno=4)", ["old"]),
    "the last first": ("warnings.simplefilter('ignore'); warnings.simplefilter('default', UserWarning)", ["user"]),
    "appended": ("warnings.simplefilter('ignore'); warnings.simplefilter('default', append=True)", []),
    "forgotten": ("warnings.simplefilter('ignore'); warnings.resetwarnings()", ["user", "old"]),
    "for a while": ("\nwith warnings.catch_warnings(): warnings.simplefilter('ignore')", ["user", "old"]),
}  # fmt: skip


@pytest.mark.parametrize(("filters", "shown"), FILTERS.values(), ids=FILTERS)
def test_filters_hold_for_what_the_guest_warns_of(filters, shown):
    start = "import warnings\n" + filters + "\n" * (2 - filters.count("\n"))
    source = f"{start}warnings.warn('user')\nwarnings.warn('old', DeprecationWarning)"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert Sandbox().exec(source).error is None
        before = warnings.filters[:1]
        Sandbox().exec("import warnings\nwarnings.warn('another session')")

    assert [str(each.message) for each in seen] == [*shown, "another session"]
    assert before == [("always", None, Warning, None, 0)]


def test_always_is_more_than_once_a_place():
    source = "import warnings\n{}\nfor _ in range(3): warnings.warn('a')"
    for filters, count in {"": 1, "warnings.simplefilter('always')": 3}.items():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("default")
            Sandbox().exec(source.format(filters))
        assert len(seen) == count


def test_a_long_dict_is_shown_in_its_own_order():
    shown = echo_text({f"k{9_999 - n}": [n] for n in range(10_000)}, 20_000)
    assert shown.startswith("{'k9999': [0], 'k9998': [1]")
    assert shown.endswith(", ...}  (10,000 elements)")
