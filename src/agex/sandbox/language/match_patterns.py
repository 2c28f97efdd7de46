"""The patterns of ``match``, and stand-ins for classes whose attribute names are known at run time only.

A class pattern reads attributes by names that may only be known at run time
(``__match_args__``). Such a pattern is matched through a stand-in class, which a guard
before the case binds to ``case!N``. The class of a nested pattern is not looked up before the interpreter
gets there: its name becomes ``case!N.cls``, where ``case!N`` holds a function that returns the stand-in.
"""

from __future__ import annotations

import abc
import ast
import enum
import functools
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import flags_of, mro_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxError
from agex.sandbox.language import nodes
from agex.sandbox.rules import names as ledger

if TYPE_CHECKING:
    from agex.sandbox.language.transformer import Transformer
    from agex.sandbox.rules.ruleset import Rules
    from agex.sandbox.runtime.membrane import Membrane

__all__ = [
    "UNKNOWN", "Late", "delicate_names", "known_match_args", "late_stand_in", "stand_in", "visit",
]  # fmt: skip


class Late(functools.partial[Any]):
    """A call that is made when its value is read as ``cls``."""

    cls: Any = property(functools.partial.__call__)


def visit(transformer: Transformer, node: ast.Match) -> ast.Match:
    """Allow; class patterns that name attributes at run time go through a stand-in."""
    node.subject = transformer.expr(node.subject)
    cases: list[ast.match_case] = []
    for case in node.cases:
        pattern = _Pattern(transformer)
        pattern.visit(case.pattern, is_reached=True)
        if pattern.stand_ins:
            cases.append(_prologue(pattern.stand_ins, case))
        case.guard = transformer.optional(case.guard)
        case.body = transformer.statements(case.body)
        cases.append(case)
    node.cases = cases
    return node


class _Pattern:
    """The pattern of one case."""

    def __init__(self, transformer: Transformer) -> None:
        self.transformer = transformer
        self.stand_ins: list[ast.expr] = []
        """Assignments that must run before the case."""

    def visit(self, node: Any, *, is_reached: bool = False) -> None:
        """Transform a pattern; *is_reached* if the interpreter gets to it whenever it tries the case."""
        transformer = self.transformer
        if isinstance(node, ast.MatchClass):
            self._class(node, is_reached=is_reached)
        elif isinstance(node, ast.MatchMapping):
            transformer.bind(node, node.rest)
            node.keys[:] = [self._value(key) for key in node.keys]
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)):
            transformer.bind(node, node.name)
        elif isinstance(node, ast.MatchValue):
            node.value = self._value(node.value)
        elif not isinstance(node, (ast.MatchSequence, ast.MatchOr, ast.MatchSingleton)):
            transformer.refuse(node, f"the pattern {type(node).__name__} is not supported", "use if and elif")
        if isinstance(node, ast.MatchAs) and node.pattern is not None:
            self.visit(node.pattern, is_reached=is_reached)
        for i, child in enumerate((*getattr(node, "patterns", ()), *getattr(node, "kwd_patterns", ()))):
            self.visit(child, is_reached=is_reached and i == 0 and isinstance(node, ast.MatchOr))

    def _value(self, node: ast.expr) -> ast.expr:
        """Check a dotted name or literal of a pattern: it cannot carry a guard.

        Where every receiver is checked, a function that the case calls reads a dotted name.
        """
        self._check_value(node)
        if not (self.transformer.rules.strict and isinstance(node, ast.Attribute)):
            return node
        path = nodes.text(ast.unparse(node), node)
        thunk = ast.Lambda(nodes.no_arguments(), self._checked(node), **nodes.at(node))
        if self.transformer.is_function:
            value = nodes.call("late!", node, thunk)
        else:
            value = nodes.call("late!", node, ast.Name("path!", nodes.LOAD, **nodes.at(node)), thunk, path)
        bound = self._bound(node, value)
        return ast.Attribute(bound, "cls", nodes.LOAD, **nodes.at(node))

    def _checked(self, node: ast.expr) -> ast.expr:
        """Guard a dotted name, without temporaries: it becomes the body of a lambda."""
        self.transformer.bare += 1
        guarded: ast.expr = self.transformer.expr(node)
        self.transformer.bare -= 1
        return guarded

    def _bound(self, node: Any, value: ast.expr) -> ast.Name:
        """Bind a value before the case; return the name that it has there."""
        stand_in = self.transformer.new_case()
        target = ast.Name(stand_in, ast.Store(), **nodes.at(node))
        self.stand_ins.append(ast.NamedExpr(target, value, **nodes.at(node)))
        return ast.Name(stand_in, nodes.LOAD, **nodes.at(node))

    def _check_value(self, node: ast.expr) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute):
                name = part.attr
                contested = self.transformer.rules.contested
                if ledger.is_denied(name) or ledger.is_private(name) or name in contested:
                    self.transformer.refuse(
                        part,
                        f"attribute '{name}' cannot be read in a pattern",
                        "compare it in a guard: case x if x == ...",
                    )
            elif isinstance(part, ast.Name):
                self.transformer.name(part)

    def _class(self, node: ast.MatchClass, *, is_reached: bool) -> None:
        transformer = self.transformer
        for name in node.kwd_attrs:
            if ledger.is_denied(name):
                transformer.refuse(
                    node, f"attribute '{name}' is not accessible", "match public attributes only"
                )
        self._check_value(node.cls)
        names = [transformer.mangle(n) for n in node.kwd_attrs]
        watched = [n for n in names if ledger.is_private(n) or n in transformer.rules.contested]
        if not node.patterns and not watched and not transformer.rules.strict:
            return
        arguments = [nodes.text(n, node) for n in (names if transformer.rules.strict else watched)]
        arguments.insert(0, ast.Constant(bool(node.patterns), **nodes.at(node)))
        path = nodes.text(ast.unparse(node.cls), node)
        class_ = self._checked(node.cls) if transformer.rules.strict else node.cls
        value = nodes.call("pattern!", node, class_, *arguments)
        if is_reached:
            node.cls = self._bound(node, value)
        else:
            bound = self._bound(node, self._late(node, value, path, arguments))
            node.cls = ast.Attribute(bound, "cls", nodes.LOAD, **nodes.at(node))

    def _late(
        self, node: ast.MatchClass, value: ast.expr, path: ast.Constant, arguments: list[ast.Constant]
    ) -> ast.Call:
        """Build the expression that returns the stand-in when it is needed."""
        thunk = ast.Lambda(nodes.no_arguments(), value, **nodes.at(node))
        if self.transformer.is_function:
            return nodes.call("late!", node, thunk)
        # A function does not see the names of a class body, nor those that exec() was given apart.
        named = ast.Name("named!", nodes.LOAD, **nodes.at(node))
        return nodes.call("late!", node, named, thunk, path, *arguments)


def _prologue(stand_ins: list[ast.expr], case: ast.match_case) -> ast.match_case:
    """Build a case that never matches and binds the stand-ins of the next one on the way.

    A guard is evaluated in the order of the cases, so a class that an earlier case makes
    unreachable is not looked up, as in plain Python. The bound value may be any guest object, but never
    the helper that it is compared with.
    """
    steps: list[ast.expr] = [
        ast.Compare(
            bound, [ast.Is()], [ast.Name("pattern!", nodes.LOAD, **nodes.at(bound))], **nodes.at(bound)
        )
        for bound in stand_ins
    ]
    here = nodes.at(stand_ins[-1])
    never = steps[0] if len(steps) == 1 else ast.BoolOp(ast.Or(), steps, **here)
    return ast.match_case(ast.MatchAs(pattern=None, name=None, **here), never, [ast.Pass(**here)])


class _StandIn(type):
    """The metaclass of the stand-ins of class patterns."""

    matched: tuple[Membrane, type, tuple[str, ...]]

    def __instancecheck__(cls, instance: object) -> bool:
        guards, class_, delicate = cls.matched
        if not isinstance(instance, class_):
            return False
        guards.check_matched(instance, delicate)
        return True


class _LateStandIn(_StandIn):
    """A stand-in that reads ``__match_args__`` when the interpreter would: the subject is an instance.

    It serves one trial of one pattern: the names checked for a subject are read from that subject.
    """

    said: Any

    def __instancecheck__(cls, instance: object) -> bool:
        guards, class_, watched = cls.matched
        if "said" in namespace_of(cls):
            raise SandboxError("a class pattern was tried twice; match one subject after the other")
        if not isinstance(instance, class_):
            return False
        cls.said = said = getattr(class_, "__match_args__", _ABSENT)
        names = said if type(said) is tuple else ()  # the interpreter reads no names from anything else
        guards.check_matched(instance, delicate_names(guards.policy.text, names, watched))
        return True

    @property
    def __match_args__(cls) -> Any:
        if cls.said is _ABSENT:
            raise AttributeError("__match_args__")
        return cls.said


_ABSENT = object()

UNKNOWN = object()
"""Stands for ``__match_args__`` where reading them runs guest code."""


def known_match_args(class_: type, *, is_guest: bool) -> Any:
    """Return the ``__match_args__`` of a class; None where it has none, `UNKNOWN` if reading runs code."""
    found: Any = _ABSENT
    if not is_guest:
        found = getattr(class_, "__match_args__", _ABSENT)
    else:
        kind = type(class_)
        if kind is not type and kind is not abc.ABCMeta and kind is not enum.EnumType:
            return UNKNOWN
        for part in mro_of(class_):
            space = namespace_of(part)
            if "__match_args__" in space:
                found = space["__match_args__"]
                break
    if found is _ABSENT:
        return None
    if type(found) is not tuple:
        return UNKNOWN
    for name in found:
        if type(name) is not str:
            return UNKNOWN
    return found


def delicate_names(rules: Rules, match_args: tuple[Any, ...], watched: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a class pattern that are checked when its subject is known."""
    names = tuple(n for n in match_args if type(n) is str)  # the interpreter stops at the first other
    for name in (*names, *watched):
        if ledger.is_denied(name):
            raise SandboxAttributeError(f"attribute '{name}' cannot be matched")
    return tuple(
        n for n in (*names, *watched) if rules.strict or ledger.is_private(n) or n in rules.contested
    )


def stand_in(guards: Membrane, class_: type, match_args: Any, delicate: tuple[str, ...]) -> type:
    """Make the stand-in for a class whose attribute names are known."""
    body: dict[str, Any] = {"matched": (guards, class_, delicate)}
    if match_args is not None:
        body["__match_args__"] = match_args
    return _StandIn(class_.__name__, _self_matching(class_), body)


def late_stand_in(guards: Membrane, class_: type, watched: tuple[str, ...]) -> type:
    """Make the stand-in for a class whose attribute names are read later."""
    return _LateStandIn(class_.__name__, _self_matching(class_), {"matched": (guards, class_, watched)})


def _self_matching(class_: type) -> tuple[type, ...]:
    """Return the bases of a stand-in: ``int(x)`` binds the subject itself, which subclasses inherit."""
    return (int,) if flags_of(class_) & _MATCH_SELF else ()


_MATCH_SELF = 1 << 22
"""``_Py_TPFLAGS_MATCH_SELF`` in CPython's ``object.h``."""
