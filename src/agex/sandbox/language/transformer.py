"""Turn guest source into guarded source: one verdict for each kind of node.

The tree is changed in place and stays ordinary Python: functions, classes and generators
remain real ones, compiled by CPython. Five things are added:

* **Receiver guards.** An attribute whose name says nothing is loaded natively. A store, a
  delete, a ``_private`` name or a contested name first looks at its receiver::

      self._x  ->  (self if type!(self) in own! else check!(self, '_x'))._x

  ``own!`` is the set of classes that the guest made, so the common case is one inline set
  lookup. The guard is an expression that yields the receiver: it serves loads, stores,
  deletes, ``+=``, tuple targets and loop targets alike, and evaluates the receiver once.
* **Stop checks.** ``if stop!: raise Stop!`` at loop heads, comprehensions, exception handlers,
  ``finally`` blocks, behind ``with`` and ``try``, and at the entry of a function in a function; any other is
  listed (:mod:`agex.sandbox.runtime.kill_switch`). The flag stays set: code that swallows the exception meets
  it again.
* **Pattern guards.** A class pattern reads attributes by names that may only be known at
  run time (``__match_args__``); such a pattern is matched through a stand-in class.
* **Echo.** The value of a last expression statement is kept in ``value!``.
* **Declarations.** The helpers are global in every scope, and so are the names of the top level where its
  locals are its globals: such a name is read faster.

Helper names contain ``!``: no identifier can, so no guest can name them.

A node type without a verdict is refused: a new Python is reviewed before its new syntax runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from agex.errors import SandboxSyntaxError
from agex.sandbox.language import annotations as hints
from agex.sandbox.language import augmented, nodes
from agex.sandbox.language import match_patterns as patterns
from agex.sandbox.language.format_fields import is_plain_format
from agex.sandbox.language.local_variables import Locals, target_names
from agex.sandbox.language.traversal import LOADED, visits
from agex.sandbox.rules import names as ledger
from agex.sandbox.rules.ruleset import HELPERS, Rules

__all__ = ["rewrite", "rewrite_expression"]


def rewrite(tree: ast.Module, rules: Rules, *, echo: bool = True, flat: bool = False) -> ast.Module:
    """Guard a parsed module, in place; a *flat* one for a single namespace, where its names are globals.

    Raises:
        SandboxSyntaxError: the program says something that is not allowed.
    """
    Rewriter(rules).module(tree, echo=echo, flat=flat)
    return tree


def rewrite_expression(tree: ast.Expression, rules: Rules) -> ast.Expression:
    """Guard a parsed expression, in place; for a guest's own ``eval``."""
    rewriter = Rewriter(rules)
    rewriter.scope = _CLASS  # no temporaries: they would become variables of the caller
    tree.body = rewriter.expr(tree.body)
    return tree


# Scopes differ in where a temporary may live: only a function has locals of its own.
_MODULE, _CLASS, _FUNCTION = "module", "class", "function"


class Rewriter:
    """Rewrites one program."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.scope = _MODULE
        self.bare = 0  # > 0 where a walrus is a syntax error or would leak: comprehensions, annotations
        self.targets: frozenset[str] = frozenset()  # what the innermost comprehension binds, and only it can
        self.classes: list[str] = []  # enclosing class names, for private name mangling
        self.cases = 0
        self.locals: Locals | None = None  # of the innermost function
        self.around: list[Locals] = []  # of the functions around it, and its own
        self.texts = False  # whether annotations stay text: from __future__ import annotations
        self.notes = False  # whether a name of the present class or module is annotated
        self.within: set[str] = set()  # names like any other, seen inside of functions, classes and so on
        self.known = self.within  # those of the present scope: most nodes are one
        self.annotated: set[str] = set()  # names of the module that cannot be declared global
        self.open: set[str] = set()  # attributes that may be asked of anything

    # -- walking -------------------------------------------------------------------

    def expr(self, node: Any) -> Any:
        """Rewrite a node that stays one node."""
        visit = _VISITS.get(type(node))
        if visit is None:
            self.refuse(node, f"{type(node).__name__} is not supported here", "use plainer Python")
        return visit(self, node)

    def children(self, block: list[Any]) -> None:
        """Rewrite a list in place; a statement list may grow."""
        if isinstance(block[0], ast.stmt):
            block[:] = self.statements(block)
            return
        known = self.known
        for i, child in enumerate(block):
            kind = type(child)
            if kind is _NAME:
                if child.id not in known or child.ctx is not LOADED:
                    self.name(child)
            elif kind is not _CONSTANT and child is not None:
                block[i] = _VISITS.get(kind, Rewriter.expr)(self, child)

    def statements(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite a block; behind a statement that can swallow an exception stands a stop check."""
        out: list[ast.stmt] = []
        for node in block:
            kind = type(node)
            if kind not in _GROWING:
                out.append(_VISITS.get(kind, Rewriter.expr)(self, node))
            elif isinstance(node, ast.Import):
                out += nodes.imports(self.expr(node))
            elif not isinstance(node, ast.AnnAssign):
                out += (self.expr(node), nodes.stop_check(node))
            elif self.scope is not _FUNCTION and hints.are_taken(self):
                out += hints.annotated(self, node)
            else:
                out.append(self.expr(node))
        return out

    def optional(self, node: Any) -> Any:
        return None if node is None else self.expr(node)

    def refuse(self, node: Any, what: str, instead: str) -> NoReturn:
        """Raise the refusal of *node*, with its line and what to write instead."""
        line = getattr(node, "lineno", None)
        error = SandboxSyntaxError(f"{what}; {instead}")
        error.lineno = line
        error.offset = (getattr(node, "col_offset", 0) or 0) + 1
        raise error

    def if_(self, node: ast.If) -> ast.If:
        """Allow; a chain of ``elif`` is walked in a loop, it can be longer than recursion goes."""
        link = node
        while True:
            link.test = self.expr(link.test)
            self.children(link.body)
            if len(link.orelse) != 1 or not isinstance(link.orelse[0], ast.If):
                break
            link = link.orelse[0]
        if link.orelse:
            self.children(link.orelse)
        return node

    def bin_op(self, node: ast.BinOp) -> ast.BinOp:
        """Allow; a chain of operators nests to the left, and is walked in a loop."""
        link = node
        while True:
            link.right = self.expr(link.right)
            if not isinstance(link.left, ast.BinOp):
                break
            link = link.left
        link.left = self.expr(link.left)
        return node

    # -- names ---------------------------------------------------------------------

    def bind(self, node: Any, name: str | None) -> None:
        """Note that a name is bound, and refuse one that cannot be."""
        if name is not None and self.locals is not None and not self.bare:
            self.locals.bind(self.mangle(name))
        self.check_definable(node, name)

    def check_definable(self, node: Any, name: str | None) -> None:
        """Refuse to bind a dunder that means something to the interpreter."""
        if name and name[0] == "_" and ledger.is_dunder(name):
            is_modules = self.scope is _MODULE or isinstance(node, ast.Global)
            if name not in (ledger.OF_MODULES if is_modules else ledger.DEFINABLE):
                self.refuse(node, f"the name '{name}' cannot be defined", "leave the double underscores out")

    def name(self, node: ast.Name) -> ast.Name:
        """Allow; dunder names only from the ledger."""
        if node.id in self.known:
            if not isinstance(node.ctx, ast.Load) and self.locals is not None and not self.bare:
                self.locals.bind(node.id)
            return node
        if isinstance(node.ctx, ast.Load):
            if ledger.is_dunder(node.id) and node.id not in _READABLE:
                self.refuse(
                    node, f"the name '{node.id}' is not available", "use an import or a builtin's plain name"
                )
        else:
            self.bind(node, node.id)
        if node.id in ledger.DENIED and self.scope is not _FUNCTION:
            self.refuse(node, f"the name '{node.id}' is not available", "choose another name")
        if node.id not in ledger.DENIED and not node.id.startswith("__"):
            self.known.add(node.id)
        return node

    def walrus(self, node: ast.NamedExpr) -> ast.NamedExpr:
        """Allow; in a comprehension it binds a name of the function around."""
        if self.locals is not None:
            self.locals.bind(self.mangle(node.target.id))
        node.target = self.expr(node.target)
        node.value = self.expr(node.value)
        return node

    def global_(self, node: ast.Global | ast.Nonlocal) -> Any:
        """Allow ``global`` and ``nonlocal`` of names that may be bound."""
        for name in node.names:
            self.bind(node, name)
        for each in self.around:
            each.share(map(self.mangle, node.names))
        return node

    def import_(self, node: ast.Import | ast.ImportFrom) -> Any:
        """Allow: what may be imported is decided when it runs, by the guarded import."""
        for alias in node.names:
            self.bind(node, alias.asname or alias.name.partition(".")[0])
            if isinstance(node, ast.ImportFrom) and ledger.is_denied(alias.name):
                self.refuse(node, f"'{alias.name}' cannot be imported", "import a public name")
        return node

    # -- attributes ----------------------------------------------------------------

    def attribute(self, node: ast.Attribute) -> ast.Attribute:
        """Allow by name; guard the receiver where the name is contested."""
        receiver, name = node.value, node.attr
        if type(receiver) is not _NAME or receiver.id not in self.known:
            node.value = self.expr(receiver)
        if name not in self.open:
            if self.is_open(name):
                self.open.add(name)
            elif ledger.is_denied(name):
                self.refuse(node, f"attribute '{name}' is not accessible", "use the object's public methods")
        if node.ctx is not LOADED and not isinstance(node.ctx, ast.Load):
            self.store(node)
        elif name not in self.open:
            self.load(node, receiver)
        return node

    def is_open(self, name: str) -> bool:
        """Tell whether anything may be asked for *name*, and there is nothing special about storing it."""
        rules = self.rules
        special = name[0] == "_" or name in rules.contested or name in rules.hot or name in ledger.DENIED
        return not (special or rules.strict)

    def load(self, node: ast.Attribute, receiver: ast.expr) -> None:
        name, rules = node.attr, self.rules
        if ledger.is_private(name):
            mangled = self.mangle(name)
            if name in rules.hot or mangled in rules.hot:
                node.value = nodes.call("check!", node, node.value, nodes.text(mangled, node))
            else:
                node.value = self.guard("own!", "check!", node, mangled)
        elif name in rules.contested:
            if name == "format" and isinstance(receiver, ast.Constant) and is_plain_format(receiver.value):
                return
            if name not in ledger.INHERITED:
                trusted = "ok!" if name in rules.only_elsewhere else "own!"
                node.value = self.guard(trusted, "check!", node, name)
                if name == "__init__" and nodes.is_super(receiver) and isinstance(node.value, ast.IfExp):
                    nodes.trust_super(node.value)
            else:
                node.value = nodes.call("check!", node, node.value, nodes.text(name, node))
        elif rules.strict:
            node.value = self.guard("ok!", "check!", node, name)

    def store(self, node: ast.Attribute) -> None:
        name = node.attr
        check = "store!" if isinstance(node.ctx, ast.Store) else "delete!"
        if name in self.open:
            node.value = self.guard("own!", check, node, name)
            return
        if ledger.is_dunder(name) and name not in ledger.STORABLE:
            self.refuse(node, f"attribute '{name}' cannot be changed", "define it in the class body")
        mangled, is_asked = self.mangle(name), ledger.is_dunder(name)
        if node.ctx is augmented.BOTH:
            check, is_asked = "asked!", name in ledger.INHERITED or is_asked
        if name in self.rules.hot or mangled in self.rules.hot or is_asked:
            node.value = nodes.call(check, node, node.value, nodes.text(mangled, node))
        else:
            node.value = self.guard("own!", check, node, mangled)

    def mangle(self, name: str) -> str:
        """Give the name that CPython will compile for *name* in the present class."""
        if not name.startswith("__") or name.endswith("__") or not self.classes:
            return name
        owner = self.classes[-1].lstrip("_")
        return f"_{owner}{name}" if owner else name

    def guard(self, trusted: str, check: str, node: ast.Attribute, name: str) -> ast.expr:
        """Give what stands for the receiver of *node*: ``(r if type!(r) in trusted else check(r, name))``.

        Where that is a variable the function settles it when all of it has been seen.
        """
        receiver, here = node.value, self.locals
        steady = self.bare and isinstance(receiver, ast.Name) and receiver.id in self.targets
        if not steady and (self.bare or here is None or self.scope is not _FUNCTION):
            return nodes.call(check, node, receiver, nodes.text(name, node))  # no temporary may live here
        asks = nodes.Look(trusted, check, name)
        if steady or here is None:
            return nodes.look(receiver, node, asks)
        if isinstance(receiver, ast.Name):
            here.rest(node, receiver, asks, self.mangle(receiver.id))
            return receiver
        return nodes.look_once(receiver, node, asks)

    def call(self, node: ast.Call) -> ast.Call:
        """Allow: a call is as safe as the function it reaches."""
        if type(node.func) is not _NAME or node.func.id not in self.known:
            node.func = self.expr(node.func)
        if node.args:
            self.children(node.args)
        if node.keywords:
            self.children(node.keywords)
        return node

    # -- blocks --------------------------------------------------------------------

    def while_(self, node: ast.While) -> ast.While:
        """Allow with a stop check at the head of the body."""
        node.test = self.expr(node.test)
        node.body = [nodes.stop_check(node), *self.statements(node.body)]
        node.orelse = self.statements(node.orelse)
        return node

    def for_(self, node: ast.For | ast.AsyncFor) -> ast.For | ast.AsyncFor:
        """Allow with a stop check at the head of the body."""
        node.iter = self.expr(node.iter)
        node.target = self.expr(node.target)
        targets = list(map(self.mangle, target_names(node.target)))
        if self.locals:
            self.locals.enter(node, targets)
        node.body = [nodes.stop_check(node), *self.statements(node.body)]
        if self.locals:
            self.locals.leave(targets)
        node.orelse = self.statements(node.orelse)
        return node

    def with_(self, node: ast.With | ast.AsyncWith) -> Any:
        """Allow; a stop check follows (see `statements`)."""
        self.children(node.items)
        node.body = self.statements(node.body)
        return node

    def try_(self, node: Any) -> Any:
        """Allow with stop checks where an exception could be swallowed."""
        node.body = self.statements(node.body)
        for handler in node.handlers:
            self.handler(handler)
        node.orelse = self.statements(node.orelse)
        if node.finalbody:
            node.finalbody = [nodes.stop_check(node), *self.statements(node.finalbody)]
        return node

    def handler(self, node: ast.ExceptHandler) -> None:
        self.bind(node, node.name)
        caught = ast.Expr(nodes.call("caught!", node), **nodes.at(node))
        check = nodes.stop_check(node) if nodes.is_narrow(node) else caught
        node.type = nodes.caught(self.optional(node.type))
        node.body = [check, *self.statements(node.body)]

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        """Allow with a stop check at entry, or listed."""
        self.bind(node, node.name)
        for i, decorator in enumerate(node.decorator_list):
            node.decorator_list[i] = self.expr(decorator)
        notes = self.signature(node.args)
        if node.returns is not None and hints.are_taken(self):
            notes.append(hints.take(self, "return", node.returns))
            node.returns = None
        node.returns = self.annotation(node.returns)
        self.type_params(node)
        hints.decorate(node, notes)
        outer = self.enter(node.args, node)
        node.body = self.body(_FUNCTION, node.body, node)
        self.leave(outer)
        nodes.let_stop(node, is_listed=self.rules.lists and not self.around)
        return node

    def enter(
        self, args: ast.arguments, owner: ast.FunctionDef | ast.AsyncFunctionDef | None
    ) -> Locals | None:
        """Enter a function; return what to leave it with."""
        names = [self.mangle(each.arg) for each in nodes.parameters(args)]
        outer, self.locals = self.locals, Locals(names, owner, in_class=self.scope is _CLASS)
        self.around.append(self.locals)
        return outer

    def leave(self, outer: Locals | None) -> None:
        """Leave a function: all of it has been seen."""
        self.around.pop().settle()
        self.locals = outer

    def lambda_(self, node: ast.Lambda) -> ast.Lambda:
        """Allow with a stop check at entry."""
        self.signature(node.args)
        outer, bare, known = self.scope, self.bare, self.known
        self.scope, self.bare, self.known = _FUNCTION, 0, self.within
        around = self.enter(node.args, None)
        body = self.expr(node.body)
        self.leave(around)
        self.scope, self.bare, self.known = outer, bare, known
        node.body = nodes.stop_before(body, node.body)
        return node

    def signature(self, args: ast.arguments) -> list[ast.expr]:
        """Rewrite parameters; return the notes of their annotations, in CPython's order."""
        notes: list[ast.expr] = []
        for arg in nodes.parameters(args):
            self.check_definable(arg, arg.arg)
            if arg.annotation is not None and hints.are_taken(self):
                notes.append(hints.take(self, self.mangle(arg.arg), arg.annotation))
                arg.annotation = None
            elif arg.annotation is not None:
                arg.annotation = self.annotation(arg.annotation)
        for defaults in (args.defaults, args.kw_defaults):
            if defaults:
                self.children(defaults)
        return notes

    def annotation(self, node: ast.expr | None) -> ast.expr | None:
        return node if node is None or self.texts else self.apart(node)

    def apart(self, node: Any) -> Any:
        """Rewrite what has a scope of its own. That of a type parameter or alias is never text."""
        known, self.known, self.bare = self.known, self.within, self.bare + 1
        node = self.expr(node)
        self.known, self.bare = known, self.bare - 1
        return node

    def type_params(self, node: Any) -> None:
        for param in getattr(node, "type_params", ()):  # Python 3.12
            self.bind(param, param.name)
            for field in ("bound", "default_value"):
                if (said := getattr(param, field, None)) is not None:
                    setattr(param, field, self.apart(said))

    def body(self, scope: str, block: list[ast.stmt], owner: ast.stmt) -> list[ast.stmt]:
        """Rewrite the body of a new scope."""
        outer, bare, notes, known = self.scope, self.bare, self.notes, self.known
        self.scope, self.bare, self.notes, self.known = scope, 0, False, self.within
        out = self.statements(block)
        has_notes = self.notes
        self.scope, self.bare, self.notes, self.known = outer, bare, notes, known
        if scope is _CLASS:
            start = 1 if nodes.is_docstring(block[0]) else 0
            if has_notes:
                out.insert(start, hints.start(owner))
            # A metaclass may prepare any mapping as namespace: the helpers must not be asked of it.
            if all(map(nodes.is_plain_member, out)):
                out[start:start] = nodes.listing(out)
            else:
                out.insert(start, self.helpers(out[0]))
        return out

    def helpers(self, node: ast.stmt) -> ast.Global:
        """Build the declaration that the helper names are globals, never names of this scope."""
        return ast.Global([*HELPERS, *(f"case!{i}" for i in range(self.cases))], **nodes.at(node))

    def class_(self, node: ast.ClassDef) -> ast.ClassDef:
        """Allow: a real class, registered as the guest's own when it is built."""
        self.bind(node, node.name)
        for i, decorator in enumerate(node.decorator_list):
            node.decorator_list[i] = self.expr(decorator)
        if node.decorator_list:
            last = ast.Name("dressed!", nodes.LOAD, **nodes.at(node.decorator_list[0]))
            node.decorator_list.insert(0, last)
        for field in (node.bases, node.keywords):
            if field:
                self.children(field)
        self.type_params(node)
        self.classes.append(node.name)
        outer, self.locals = self.locals, None
        node.body = self.body(_CLASS, node.body, node)
        self.locals = outer
        self.classes.pop()
        return node

    def ann_assign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        """Allow annotated assignments."""
        if isinstance(node.target, ast.Name):
            self.annotated.add(node.target.id)
        node.target = self.expr(node.target)
        node.annotation = self.annotation(node.annotation)  # type: ignore[assignment]
        node.value = self.optional(node.value)
        return node

    def type_alias(self, node: Any) -> Any:
        """Allow ``type X = ...`` (Python 3.12)."""
        node.name = self.expr(node.name)
        self.type_params(node)
        node.value = self.apart(node.value)
        return node

    def comprehension(self, node: Any) -> Any:
        """Allow with a stop check for each element."""
        self.bare += 1
        first, around = node.generators[0], self.targets
        first.iter = self.expr(first.iter)  # a matter of the code around
        known, self.known = self.known, self.within
        self.targets = frozenset(name for each in node.generators for name in target_names(each.target))
        for generator in node.generators:
            if generator is not first:
                generator.iter = self.expr(generator.iter)
            generator.target = self.expr(generator.target)
            if generator.ifs:
                self.children(generator.ifs)
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.expr(getattr(node, field)))
        self.targets, self.known = around, known
        self.bare -= 1
        first.ifs.insert(0, nodes.stop_condition(node))
        return node

    # -- match ---------------------------------------------------------------------

    def new_case(self) -> str:
        """Give a name for one more stand-in of a class pattern."""
        self.cases += 1
        return f"case!{self.cases - 1}"

    @property
    def is_function(self) -> bool:
        """Whether the names of the present scope are those of a function."""
        return self.scope is _FUNCTION

    # -- the whole -----------------------------------------------------------------

    def module(self, tree: ast.Module, *, echo: bool, flat: bool) -> None:
        names = self.known = set[str]()
        last = tree.body[-1] if tree.body else None
        if echo and isinstance(last, ast.Expr):
            target = ast.Name("value!", ast.Store(), **nodes.at(last))
            tree.body[-1] = ast.Assign([target], last.value, **nodes.at(last))
        start = nodes.prelude_length(tree.body)
        self.texts = any(nodes.is_future(node, "annotations") for node in tree.body[:start])
        tree.body = self.statements(tree.body)
        if self.notes:
            tree.body.insert(start, hints.start(tree.body[0]))
        # LOAD_GLOBAL is specialised, LOAD_NAME is not: module-level loops pay for the difference.
        if tree.body:
            declared = self.helpers(tree.body[0])
            if flat:
                fixed = self.annotated.union(*map(nodes.imported, tree.body[:start]))
                declared.names += sorted(names - fixed)
            tree.body.insert(start, declared)


_READABLE = ledger.NAMES | ledger.DEFINABLE
_NAME, _CONSTANT = ast.Name, ast.Constant
_GROWING = frozenset({ast.Import, ast.AnnAssign, ast.With, ast.AsyncWith, ast.Try, ast.TryStar})
"""Statements that may become several: behind the last four, an exception may be gone."""

_SPECIAL: dict[str, Callable[[Rewriter, Any], Any]] = {
    "If": Rewriter.if_,
    "BinOp": Rewriter.bin_op,
    "Name": Rewriter.name,
    "NamedExpr": Rewriter.walrus,
    "Attribute": Rewriter.attribute,
    "Call": Rewriter.call,
    "Global": Rewriter.global_,
    "Nonlocal": Rewriter.global_,
    "Import": Rewriter.import_,
    "ImportFrom": Rewriter.import_,
    "For": Rewriter.for_,
    "AsyncFor": Rewriter.for_,
    "While": Rewriter.while_,
    "With": Rewriter.with_,
    "AsyncWith": Rewriter.with_,
    "Try": Rewriter.try_,
    "TryStar": Rewriter.try_,
    "FunctionDef": Rewriter.function,
    "AsyncFunctionDef": Rewriter.function,
    "Lambda": Rewriter.lambda_,
    "ClassDef": Rewriter.class_,
    "AnnAssign": Rewriter.ann_assign,
    "AugAssign": augmented.assign,
    "TypeAlias": Rewriter.type_alias,
    "ListComp": Rewriter.comprehension,
    "SetComp": Rewriter.comprehension,
    "DictComp": Rewriter.comprehension,
    "GeneratorExp": Rewriter.comprehension,
    "Match": patterns.match,
}
"""Node types that get more than a look at their children."""

_VISITS = dict[type, Callable[[Rewriter, Any], Any]]()
_VISITS |= visits(_VISITS)
_VISITS |= {getattr(ast, name): visit for name, visit in _SPECIAL.items() if hasattr(ast, name)}
