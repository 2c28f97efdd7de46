"""Policy of sympy, which evaluates text: checks of what it parses and of what it compiles to functions.

``sympify`` parses text into Python and passes it to ``eval``, and so do its callers, for example
``expr.coeff(text)`` of an input. ``lambdify`` writes a program with the names of symbols in it. Both are
checked for all their callers in sympy.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import types
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NoReturn

from agex.errors import SandboxError
from agex.sandbox.patches.replacement import replace, replace_everywhere
from agex.sandbox.policy.library import Library, homes, less, only
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import asking

__all__ = ["LIBRARIES"]

_TOP = less(
    # binds names where it is called from; process-wide settings, caches and registries
    "var cacheit memoize_property seterr register_handler remove_handler factor_cache public",
    "threaded xthreaded init_session init_printing pprint_use_unicode pprint_try_use_unicode timed",
    # other programs, windows, files; tests; drawing evaluates texts of its own
    "preview print_gtk pager_print plot* textplot test doctest",
)

_MODULES = {
    "": _TOP,
    "abc": less("ns*"),
    "calculus": less(),
    "calculus.util": less(),
    "combinatorics": less(),
    "core": only(
        "Add Basic Expr Float Function Integer Lambda Mod Mul N Pow Rational S Symbol symbols sympify"
    ),
    "core.function": only("AppliedUndef Derivative Function Lambda Subs UndefinedFunction diff expand"),
    "core.numbers": only("E Float I Integer NaN Number One Rational Zero oo pi"),
    "core.relational": only("Eq Equality Ge Gt Le Lt Ne Relational"),
    "core.symbol": only("Dummy Symbol Wild symbols"),
    "discrete": less(),
    "functions": less(),
    "geometry": less(),
    "integrals": less(),
    "logic": less(),
    "logic.boolalg": only("And Boolean BooleanFunction Equivalent Implies Nand Nor Not Or Xor to_cnf to_dnf"),
    "matrices": less(),
    "ntheory": less(),
    "parsing": only(),
    "parsing.sympy_parser": only(
        "convert_xor function_exponentiation implicit_application implicit_multiplication",
        "implicit_multiplication_application parse_expr rationalize standard_transformations T",
    ),
    "physics": only(),
    "physics.units": only("Quantity convert_to"),
    "plotting": only(),
    "polys": less(),
    "polys.polytools": only("Poly factor gcd lcm poly roots"),
    "series": less(),
    "sets": less(),
    "simplify": less(),
    "solvers": less(),
    "solvers.solveset": only("linsolve nonlinsolve solveset"),
    "stats": less("sampling_density"),
    "tensor": less(),
    "utilities": only("flatten group lambdify numbered_symbols ordered subsets take variations"),
    "utilities.iterables": only("flatten multiset_permutations partitions subsets variations"),
    "utilities.lambdify": only("implemented_function lambdify"),
    "vector": less(),
}
"""Not listed: autowrap, codegen and compilation (run compilers), plotting, interactive, printing of other
programs, testing, external, matchpy, physics but for its units."""

_PLAIN = {each: getattr(builtins, each) for each in ("abs", "divmod", "len", "pow", "round", "sum")}
"""Builtins that a text may call."""

_SYNTAX = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword,
    ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Subscript, ast.Slice,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
"""The syntax that a text may consist of: no attributes, no functions of its own, no loops."""


def _prepare() -> None:
    parser = import_module("sympy.parsing.sympy_parser")
    replace(parser, "eval_expr", _evaluated)
    replace(parser, "evaluateFalse", _unevaluated)
    replace_everywhere("sympy.utilities.lambdify", "lambdify", _lambdified)
    replace(import_module("sympy"), "lambdify", _lambdified)


def _refuse(what: str) -> NoReturn:
    raise SandboxError(f"{what}; write it in your own code, with sympy's objects instead of text")


def _check_syntax(code: str) -> ast.Expression:
    tree = ast.parse(code.strip(), mode="eval")
    for node in ast.walk(tree):
        if not isinstance(node, _SYNTAX) or (isinstance(node, ast.Call) and type(node.func) is not ast.Name):
            _refuse(f"sympy does not evaluate {type(node).__name__} in text here")
    return tree


def _unevaluated(real: Any) -> Any:
    """Replace the parser of a text that is not to be simplified."""

    def evaluate_false(s: str) -> Any:
        if asking() is not None:
            _check_syntax(s)
        return real(s)

    return evaluate_false


def _evaluated(real: Any) -> Any:
    """Replace ``eval`` of a text: it may use names, calls and operators that sympy grants."""

    def eval_expr(code: Any, local_dict: Any, global_dict: Any) -> Any:
        if asking() is not None:
            if isinstance(code, types.CodeType):  # the function above has checked its syntax
                names = set(code.co_names)
            else:
                names = {each.id for each in ast.walk(_check_syntax(code)) if isinstance(each, ast.Name)}
            for name in names - set(local_dict):
                if not _is_granted(name, global_dict):
                    _refuse(f"sympy does not evaluate {name!r} in text here")
        return real(code, local_dict, global_dict)

    return eval_expr


def _is_granted(name: str, names: Mapping[str, Any]) -> bool:
    sympy: Any = import_module("sympy")
    value = names.get(name)
    if name in _PLAIN:
        return value is _PLAIN[name]
    if name in {"max", "min"}:
        return value in (sympy.Max, sympy.Min)
    if _TOP.allows(name) and name in sympy.__all__ and value is getattr(sympy, name):
        return not isinstance(value, types.ModuleType)
    return isinstance(value, sympy.Basic) or (
        type(value) is types.FunctionType and provenance.session_of(value) is not None
    )


_NUMERIC = frozenset({"math", "mpmath", "numpy", "scipy", "sympy"})


def _lambdified(real: Any) -> Any:
    """Replace ``lambdify``: names of symbols are written into a program, beside all of numpy."""
    signature = inspect.signature(real)

    def lambdify(*args: Any, **kwargs: Any) -> Any:
        if asking() is not None:
            said = signature.bind(*args, **kwargs).arguments
            if said.get("printer") is not None or type(said.get("cse", False)) is not bool:
                raise SandboxError("lambdify() takes no printer and no function for cse here; leave them out")
            _Names(said["args"], _own_functions(said.get("modules"))).check(said["expr"])
        return real(*args, **kwargs)

    return lambdify


def _own_functions(modules: Any) -> set[str]:
    """Return the names of functions passed in *modules*."""
    found: set[str] = set()
    for each in _leaves(modules, dicts=True):
        if type(each) is dict and all(type(name) is str and name.isidentifier() for name in each):
            found |= {name for name in each if "__" not in name}
        elif each is not None and (type(each) is not str or each not in _NUMERIC):
            raise SandboxError(f"lambdify() takes modules of {sorted(_NUMERIC)} here, or a dict of functions")
    return found


def _leaves(value: Any, *, dicts: bool = False) -> Iterator[Any]:
    """Yield the items of lists, at any depth. Other containers are refused by the callers."""
    if type(value) in {list, tuple, set, frozenset}:
        for each in value:
            yield from _leaves(each, dicts=dicts)
    elif type(value) is dict and not dicts:
        yield from _leaves([*value, *value.values()])
    elif hasattr(type(value), "flat") and _is_sympys(value):  # a matrix
        matrix: Any = value
        yield from _leaves(list(matrix.flat()))
    else:
        yield value


def _is_sympys(value: Any) -> bool:
    class_ = type(value)
    return not provenance.is_guest_class(class_) and next(homes(class_), ("", ""))[0] == "sympy"


class _Names:
    """The names that a program written by sympy may use: its arguments, and functions passed to it."""

    def __init__(self, arguments: Any, functions: set[str]) -> None:
        self._given: set[Any] = set()
        self._functions = functions
        for each in _leaves(arguments):
            is_name = type(each) is str and _is_plain(each)
            if not is_name and not _is_expression(each):
                raise SandboxError(f"lambdify() takes symbols and their names here, not {each!r}")
            self._given.add(each)

    def check(self, expr: Any) -> None:
        """Refuse an expression that writes anything but operators, these names, and functions of sympy."""
        for each in _leaves(expr):
            if type(each) not in {int, float, complex, bool, type(None)}:
                self._check(each)

    def _check(self, node: Any) -> None:
        left = [node]
        while left:
            part = left.pop()
            if not _is_expression(part):
                raise SandboxError(f"lambdify() takes sympy's expressions here, not {type(part).__name__}")
            self._check_name(part)
            left.extend(part.args)
        for free in node.free_symbols:
            if free not in self._given and str(free) not in self._given:
                raise SandboxError(f"lambdify() needs {str(free)!r} among the arguments of the function")

    def _check_name(self, part: Any) -> None:
        if part in self._given:
            return  # sympy renames it if its name is no identifier
        if _is_undefined(part):
            name: Any = type(part).__name__
            is_known = name in self._functions or callable(getattr(part, "_imp_", None))
        else:
            name = getattr(part, "name", None)
            is_known = not isinstance(name, str) or name not in vars(builtins)
        if not is_known or (isinstance(name, str) and not _is_plain(name)):
            raise SandboxError(
                f"lambdify() takes no {name!r} here; hand its function over: modules=[{{...}}]"
            )


def _is_expression(part: Any) -> bool:
    """Return whether a value is an expression of sympy, and not a piece of the programs that it writes."""
    is_code = str(type(part).__module__).startswith("sympy.codegen")
    return (_is_sympys(part) and hasattr(part, "args") and not is_code) or _is_undefined(part)


def _is_undefined(part: Any) -> bool:
    function: Any = import_module("sympy.core.function")
    return isinstance(part, function.AppliedUndef) and type(type(part)) is function.UndefinedFunction


def _is_plain(name: str) -> bool:
    return name.isidentifier() and "__" not in name and not keyword.iskeyword(name)


LIBRARIES = {
    "sympy": Library(
        name="sympy",
        modules=_MODULES,
        # other programs, windows and files
        denied=frozenset("plot preview show save saveimage append_to_file".split()),
        brings=("numpy",),
        preload=("mpmath", "numpy", "scipy.special", "sympy.stats", "sympy.vector", "sympy.physics.units"),
        prepare=_prepare,
        instead={"plot": "draw what lambdify() makes with matplotlib"},
    )
}
