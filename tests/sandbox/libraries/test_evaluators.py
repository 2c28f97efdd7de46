"""Text that a library evaluates is guest code: it reads and calls what the code itself could.

Stopped by: sandbox.policy.evaluators, sandbox.libraries.jinja2, sandbox.libraries.pandas.query,
sandbox.libraries.sympy.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging.config
import os
import pickle
import pkgutil
import pydoc
import timeit
import types
import unittest

import attr
import jinja2
import joblib
import mpmath
import numexpr
import pandas as pd
import pytest
import sympy
import typing_extensions
import yaml

from agex.errors import DefinitionError, SandboxError
from agex.files import connect_fs
from agex.sandbox import Policy, Sandbox
from agex.sandbox.policy.evaluators import _PARTS

SECRET = "s3cr3t"


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("AGEX_SECRET", SECRET)


def result_of(source: str, *modules: types.ModuleType, fs=None, strict=False, **names: object):
    policy = Policy.default(strict=strict)
    for module in modules:
        policy.module(module)
    return Sandbox(policy, fs=fs).exec(source, names)


def stdout_of(source: str, *modules: types.ModuleType, **settings: object) -> str:
    result = result_of(source, *modules, **settings)
    assert result.traceback == ""
    return result.stdout


TEXT = "__import__('os').environ['AGEX_SECRET']"
SYMPY = {
    "sympify": "sympify(T)",
    "S": "S(T)",
    "a list": "sympify([T])",
    "without simplifying": "sympify(T, evaluate=False)",
    "parse_expr": "parse_expr(T)",
    "parse_expr without simplifying": "parse_expr(T, evaluate=False)",
    "names of its own": "parse_expr('f(1)', local_dict={'f': lambda x: x.real}, global_dict={}).real.__class__.__mro__",
    "no names": "parse_expr(T, global_dict={})",
    "transformations": "from sympy.parsing.sympy_parser import standard_transformations\nparse_expr('1', transformations=(*standard_transformations, lambda t, l, g: [(1, T)]))",
    "an attribute": "sympify('x.__class__')",
    "a method": "sympify('x.diff(x)')",
    "a builtin": "sympify('open(\"/etc/passwd\")')",
    "eval": "sympify('eval(\"1\")')",
    "getattr": "sympify('getattr(x, \"args\")')",
    "vars": "sympify('vars()')",
    "a lambda": "parse_expr('(lambda: 1)()')",
    "a loop": "parse_expr('[a for a in (1,)][0].real')",
    "nested text": "sympify('sympify(\"x.__class__\")')",
    **{
        f"by {name}": f"{name}(T)"
        for name in "Poly solve Matrix simplify expand integrate diff factor N nsimplify Abs sin latex_of".split()
        if hasattr(sympy, name)
    },
    "a coefficient": "x.coeff(T)",
    "a function of it": "Function('f')(T)",
    "a limit": "limit(T, x, 0)",
    "an operator": "x.match(T)",
    "a method of a matrix": "Matrix([x]).subs({x: 1}).applyfunc(lambda e: sympify(T))",
    "lambdify of text": "lambdify(x, T)",
    "lambdify of a symbol": "lambdify(x, Symbol(T))(1)",
    "lambdify of a symbol twice": "lambdify(Symbol(T), Symbol(T, real=True))(1)",
    "lambdify of a builtin": "lambdify(x, Symbol('eval'))(1)('1')",
    "lambdify of a function": "lambdify(x, Function('eval')(x))('1')",
    "lambdify of numpy's": "lambdify(x, Function('fromfile')(x))('/etc/passwd')",
    "lambdify of an argument": "lambdify(T, x)",
    "lambdify of a module": "lambdify(x, x, modules=T)",
    "lambdify by a printer": "lambdify(x, x, printer=lambda e: T)",
    "lambdify of its own": "class A(Symbol):\n    def _pythoncode(self, *a): return T\n    _numpycode = _lambdacode = _sympystr = _pythoncode\nlambdify(x, A('y') + x)(1)",
    "lambdify of a matrix": "lambdify(x, Matrix([Symbol('eval')]))(1)",
    "lambdify of a matrix symbol": "lambdify(x, MatrixSymbol('eval', 1, 1))(1)",
    "lambdify in a list": "lambdify(x, [x, Symbol('eval')])(1)",
    "lambdify in a dict": "lambdify(x, {x: Symbol('eval')})(1)",
    "lambdify of a bound name": "lambdify(x, Sum(Symbol('a__b'), (Symbol('a__b'), 1, x)))(1)",
    "nsolve": "nsolve(Function('eval')(x), x, 1)",
    "plot": "plot(x)",
    "var": "var('__builtins__')",
    "preview": "preview(x)",
    "autowrap": "from sympy.utilities.autowrap import autowrap",
    "codegen": "from sympy.utilities.codegen import codegen",
    "the parser of syntax trees": "from sympy.parsing.ast_parser import parse_expr",
    "by lambdify's module": "import sympy.plotting.experimental_lambdify",
}


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("way", SYMPY.values(), ids=SYMPY)
def test_sympy_evaluates_no_text_that_the_code_could_not(way, strict):
    source = f"from sympy import *\nx = Symbol('x')\nT = {TEXT!r}\n{way}"
    result = result_of(source, sympy, strict=strict)
    assert result.error is not None
    assert SECRET not in f"{result.error}{result.stdout}"


def test_an_expression_that_is_an_input_evaluates_no_text_either():
    for source in ("e.coeff(T)", "e.match(T)", "(e * 2).coeff(T)"):
        result = result_of(source, e=sympy.Symbol("x") + 1, T=TEXT)
        assert isinstance(result.error, SandboxError)


def test_sympy_is_of_use():
    source = """import sympy as sp
from sympy import *
from sympy.abc import a, b
from sympy.parsing.sympy_parser import implicit_multiplication_application, standard_transformations
x, y = symbols('x y')
print(solve(x**2 - 4), integrate(sin(x)), diff(x**3), limit(sin(x)/x, x, 0), Matrix([[1, 2], [3, 4]]).inv())
print(sympify('x**2 + sin(y)/3'), S('1/3'), sympify('2*x + x', evaluate=False), Rational('1/3'), sympify('Max(1, 2)'))
print(parse_expr('2x y', transformations=(*standard_transformations, implicit_multiplication_application)))
print(parse_expr('f(2) + 1', local_dict={'f': lambda n: n * 10}), sympify('[1, x]'), sympify('x > 1'), Poly('x**2 + 1'))
print(lambdify(x, x + 1)(1), lambdify((x, y), Matrix([x + y]), 'sympy')(1, 2)[0], lambdify([(x, y)], x * y)((2, 3)))
print(lambdify(x, Function('f')(x), [{'f': lambda v: v * 3}, 'math'])(2), lambdify(y, Sum(x, (x, 1, y)))(3))
print(lambdify('x', x ** 2)(3), round(nsolve(cos(x) - x, 1), 3), latex(x**2), N(pi, 5), factorint(60), a + b)
print(dsolve(Function('f')(x).diff(x) - Function('f')(x)), Eq(x, 1), Piecewise((1, x > 0), (0, True)))
"""
    assert stdout_of(source, sympy).splitlines() == [
        "[-2, 2] -cos(x) 3*x**2 1 Matrix([[-2, 1], [3/2, -1/2]])",
        "x**2 + sin(y)/3 1/3 x + 2*x 1/3 2",
        "2*x*y",
        "21 [1, x] x > 1 Poly(x**2 + 1, x, domain='ZZ')",
        "2 3 6",
        "6 6",
        "9 0.739 x^{2} 3.1416 {2: 2, 3: 1, 5: 1} a + b",
        "Eq(f(x), C1*exp(x)) Eq(x, 1) Piecewise((1, x > 0), (0, True))",
    ]


def test_the_hosts_own_sympy_evaluates_as_ever():
    result_of("import sympy", sympy)
    assert sympy.sympify("Symbol('x').name") == "x"
    assert sympy.parse_expr("(2).p") == 2
    assert sympy.lambdify([], sympy.Symbol("copyright"))() is not None


TEMPLATES = {
    "a class": "{{ ''.__class__.__mro__ }}",
    "globals": "{{ f.__globals__.os }}",
    "an index": "{{ f['__globals__']['os'] }}",
    "a filter": "{{ (f|attr('__globals__')).os }}",
    "a map": "{{ ([f]|map(attribute='__globals__')|first).os }}",
    "a group": "{{ ([f]|groupby('__globals__')|first)[0].os }}",
    "a format": "{{ '{0.__globals__[os]}'.format(f) }}",
    "a format of a map": "{{ '{f.__globals__[os]}'.format_map({'f': f}) }}",
    "a global": "{{ cycler.__init__.__globals__.os }}",
    "a module": "{{ s.os.environ }}",
    "a module by a filter": "{{ s|map(attribute='os')|first }}{{ (s|attr('os')).environ }}",
    "the environment": "{{ e.parse('x') }}",
    "itself": "{{ self._TemplateReference__context.environment.parse }}",
    "a macro": "{% macro m() %}{% endmacro %}{{ m._environment.parse }}",
    "an include": "{% include '/etc/passwd' %}",
    "an import": "{% import 'os' as os %}",
    "an excluded member": "{{ v.secret }}!",
}


class Vault:
    """An object of the host's."""

    secret = SECRET


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_reads_what_the_code_may_read(template, strict):
    policy = Policy.default(strict=strict)
    policy.module(jinja2)
    policy.cls(Vault, exclude=("_*", "secret"))
    names = {"f": stdout_of, "s": types.SimpleNamespace(os=os), "t": template, "v": Vault()}
    for make in ("jinja2.Template(t)", "E.from_string(t)", "E2.get_template('t')", "E3.from_string(t)"):
        source = (
            "import jinja2, jinja2.sandbox\nE = jinja2.Environment()\nE3 = jinja2.sandbox.SandboxedEnvironment()\n"
            "E2 = jinja2.Environment(loader=jinja2.DictLoader({'t': t}), undefined=jinja2.StrictUndefined)\n"
            f"out = {make}.render(f=f, s=s, e=E, v=v)"
        )
        result = Sandbox(policy).exec(source, names)
        shown = f"{result.namespace.get('out')}{result.error}"
        assert SECRET not in shown
        assert "root:" not in shown
        assert result.error is not None or not result.namespace["out"].strip("!")


JINJA = [
    "E(extensions=['os.system'])",
    "E(extensions=[type('X', (), {'priority': 1})])",
    "E(bytecode_cache=object())",
    "E(enable_async=True)",
    "E().parse('x')",
    "E().compile('x')",
    "E().lex('x')",
    "E().overlay(extensions=['os.system'])",
    "E().add_extension('os.system')",
    "E().extend(x=1)",
    "E().code_generator_class",
    "E().compile_templates('/tmp/x')",
    "e = E()\ne.code_generator_class = object",
    "E().from_string(type('T', (), {})())",
    "type(E())(getattr)._check",
    "type(E()).__mro__",
    "class A(type(E())): pass",
    "class A(type(jinja2.Template('x'))): pass",
    "type(jinja2.Template('x'))('x')",
    "type(jinja2.Template('x')).from_code",
    "jinja2.Template('x').environment.parse",
    "jinja2.Template('x').root_render_func",
    "jinja2.Template('x').stream().dump('/tmp/x')",
    "jinja2.nodes",
    "jinja2.ModuleLoader('/tmp')",
    "jinja2.PackageLoader('os')",
    "jinja2.FileSystemBytecodeCache('/tmp')",
    "import jinja2.nativetypes",
    "import jinja2.ext",
    "from jinja2.environment import Environment",
    "E(loader=jinja2.FileSystemLoader('/etc')).get_template('passwd')",
    "class L: \n  def load(self, e, *a): return e.compile('x')\nE(loader=L()).get_template('x').root_render_func",
]


@pytest.mark.parametrize("way", JINJA)
def test_nothing_of_jinja_writes_a_program_or_a_file(way):
    assert result_of(f"import jinja2\nE = jinja2.Environment\n{way}", jinja2).error is not None


def test_an_environment_that_is_an_input_makes_no_templates_of_text():
    host = jinja2.Environment(loader=jinja2.DictLoader({"a": "{{ x }}"}))
    for source in ("e.from_string(T)", "e.compile_expression(T)", "type(e.get_template('a'))(T)"):
        result = result_of(source, e=host, T="{{ ''.__class__ }}")
        assert "no template of the host's" in str(result.error)
    assert result_of("e.get_template('a').render(x=3)", e=host).value == "3"
    assert result_of("f('{{ 1 }}')", f=lambda text: jinja2.Template(text).render()).value == "1"
    assert host.from_string("{{ 1 }}").render() == jinja2.Template("{{ 1 }}").render() == "1"


def test_jinja_is_of_use():
    source = """import os
import jinja2
from jinja2 import DictLoader, Environment, FileSystemLoader, StrictUndefined, Template, UndefinedError
print(Template('{% for i in xs %}{{ loop.index }}:{{ i.a }} {% endfor %}').render(xs=[{'a': 1}, {'a': 2}]))
pages = {'base': '<{% block b %}{% endblock %}>', 'child': '{% extends "base" %}{% block b %}{{ x|upper }}{% endblock %}'}
env = Environment(loader=DictLoader(pages), undefined=StrictUndefined, autoescape=True, extensions=['jinja2.ext.do'])
env.filters['twice'] = lambda v: v * 2
env.globals['g'] = 5
print(env.get_template('child').render(x='abc'), env.from_string('{{ 2|twice }} {{ g }} {{ "<" }}').render())
class P:
    name, _private = 'n', 1
    def hi(self): return 'hi'
print(env.from_string('{{ p.name }} {{ p.hi() }} {{ ps|map(attribute="name")|join }} {{ "{:>3}".format(3) }}').render(p=P(), ps=[P()]))
try: env.from_string('{{ nope }}').render()
except UndefinedError as error: print(error)
print(env.compile_expression('a + 1')(a=2), list(Template('a{{ b }}').generate(b=1)))
os.mkdir('t')
with open('t/a.txt', 'w') as file: file.write('v={{ v }}')
print(Environment(loader=FileSystemLoader('t')).get_template('a.txt').render(v=3))
"""
    assert stdout_of(source, jinja2, fs=connect_fs()).splitlines() == [
        "1:1 2:2 ",
        "<ABC> 4 5 &lt;",
        "n hi n   3",
        "'nope' is undefined",
        "3 ['a', '1']",
        "v=3",
    ]


def test_a_returned_template_keeps_the_check_of_its_session():
    made = result_of("import jinja2\njinja2.Template('{{ x.a }} {{ x.__class__ }}')", jinja2).value
    assert made.render(x=types.SimpleNamespace(a=1)) == "1 "


EVALUATORS = [numexpr, timeit, pickle, importlib, logging.config, pkgutil, pydoc, unittest]


@pytest.mark.parametrize("module", EVALUATORS, ids=lambda module: module.__name__)
def test_a_package_that_is_an_evaluator_is_not_registered_without_a_word(module):
    for opened in (False, True):
        with pytest.raises(DefinitionError, match="include="):
            Policy.default().module(module, host_fs_access=opened)


def test_a_word_registers_it():
    policy = Policy.default()
    policy.module(numexpr, include=["evaluate"], host_fs_access=True)
    assert Sandbox(policy).exec("import numexpr\nint(numexpr.evaluate('2 * 3'))").value == 6
    policy.module(timeit, include=["default_timer"])


def test_a_module_beside_an_evaluator_that_runs_nothing_is_registered():
    source = "import importlib.metadata\nimportlib.metadata.version('pytest')"
    assert result_of(source, importlib.metadata).value == importlib.metadata.version("pytest")


UNKNOWN = {
    "a constant of mpmath": (mpmath, "mpmath.identify(3.5, [T])"),
    "a constant of mpmath by its context": (mpmath, "mpmath.mp.identify(3.5, [T])"),
    "a reference": (
        typing_extensions,
        "typing_extensions.evaluate_forward_ref(typing_extensions.ForwardRef(T))",
    ),
    "an attribute of attrs": (
        attr,
        "attr.make_class('C', {f'a={T}': attr.ib(kw_only=True)}, repr=False, eq=False)()",
    ),
}


@pytest.mark.parametrize("way", UNKNOWN)
def test_text_that_any_library_evaluates_names_nothing_that_leads_out(way):
    module, source = UNKNOWN[way]
    result = result_of(f"import {module.__name__}\nout = None\nout = {source}", module, T=TEXT)
    assert isinstance(result.error, SandboxError)
    assert SECRET not in f"{result.error}{result.namespace['out']}"


def test_what_libraries_write_and_evaluate_themselves_is_evaluated():
    source = """import attr, collections, dataclasses, typing
P = collections.namedtuple('P', 'a b')
@attr.define
class C:
    a: int = 1
    b: list = attr.field(factory=list, converter=list, validator=attr.validators.instance_of(list))
@dataclasses.dataclass(order=True, frozen=True, slots=True)
class D:
    a: int = 1
C(2) == C(2), P(1, 2).b, D() < D(2), typing.NamedTuple('N', [('a', int)])(1).a, attr.make_class('M', ['x'])(3).x
"""
    assert result_of(source, attr).value == (True, 2, True, 1, 3)


PARTS = [
    "yaml.unsafe_load(T)",
    "yaml.full_load(T)",
    "yaml.load(T, Loader=yaml.UnsafeLoader)",
    "yaml.load(T, Loader=yaml.FullLoader)",
    "yaml.load(T, Loader=yaml.Loader)",
    "yaml.load(T, Loader=yaml.CLoader)",
    "yaml.loader.UnsafeLoader",
    "yaml.constructor.UnsafeConstructor",
    "from yaml.cyaml import CUnsafeLoader",
    "from yaml import *\nunsafe_load(T)",
    "yaml.load(T, Loader=yaml.SafeLoader)",
    "yaml.add_constructor('!x', print)",
    "joblib.load('x')",
    "from joblib.numpy_pickle import load",
]


@pytest.mark.parametrize("way", PARTS)
def test_members_that_are_evaluators_are_left_out(way):
    text = "!!python/object/apply:os.getenv [AGEX_SECRET]"
    result = result_of(f"import joblib, yaml\nT = {text!r}\n{way}", yaml, joblib)
    assert result.error is not None


def test_other_members_stay_and_a_name_gives_one_back():
    assert result_of("import yaml\nyaml.load('a: 1', Loader=yaml.SafeLoader)", yaml).value == {"a": 1}
    policy = Policy.default()
    policy.module(yaml, include=["*", "full_load"], exclude=lambda name: name.startswith("_"))
    source = "import yaml\nyaml.full_load('a: 1'), hasattr(yaml, 'unsafe_load')"
    assert Sandbox(policy).exec(source).value == ({"a": 1}, False)


PANDAS = {
    "eval": "pd.eval(T)",
    "a method": "d.eval(T)",
    "a query": "d.query(T)",
    "getattr": "getattr(d, 'eval')(T)",
    "operator": "import operator\noperator.methodcaller('eval', T)(d)",
    "its class": "pd.DataFrame.eval(d, T)",
    "its class by type": "type(d).query(d, T)",
    "a pipe": "d.pipe('eval', T)",
    "a pipe of a method": "d.pipe(pd.DataFrame.eval, T)",
    "apply": "d.apply('eval', args=(T,))",
    "agg": "d.agg('eval', 0, T)",
    "groups": "d.groupby('a').apply('eval', T)",
    "transform": "d.transform('eval', 0, T)",
    "map": "list(map(d.eval, [T]))",
    "a partial": "import functools\nfunctools.partial(d.eval, T)()",
    "super": "class D(pd.DataFrame):\n    def f(self): return super().eval(T)\nD({'a': [1]}).f()",
    "a style": "d.style.format('{0.__class__}').to_html()",
    "a style in a table": "d.style.format({'a': '{0.__class__}'}).to_html()",
    "a template": "d.style.template_html",
    "templates": "type(d.style).env",
    "the core": "import pandas.core.computation.eval as e",
    "expressions": "pd.core.computation",
    "local names": "d.eval('@f.__globals__', local_dict={'f': f})",
    "a level": "d.eval('@g.__class__', level=1)",
    "resolvers": "d.eval('x.__class__', resolvers=[{'x': f}])",
    "another parser": "d.eval(T, parser='python')",
    "another engine": "d.eval(T, engine='python')",
    "assignment": "d.eval('b = @f.__globals__')",
    "where": "d.where(T)",
}


@pytest.mark.parametrize("way", PANDAS.values(), ids=PANDAS)
def test_pandas_evaluates_no_text_by_another_door(way):
    text = "@f.__globals__['os'].environ['AGEX_SECRET']"
    source = f"import pandas as pd\nd = pd.DataFrame({{'a': [1]}})\nT = {text!r}\nout = None\n{way}"
    result = result_of(source, pd, f=stdout_of)
    assert result.error is not None
    assert SECRET not in str(result.error)


def test_the_table_of_evaluators_names_what_is_there():
    assert all(hasattr(yaml, name) or hasattr(yaml.constructor, name) for name in _PARTS["yaml"].split())
