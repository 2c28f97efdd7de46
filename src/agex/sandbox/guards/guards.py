"""The checks that guarded code calls, and the builtins it runs with.

One :class:`Guards` serves one session. Its ``builtins`` are an exact dict: with a subclass the interpreter
would not specialise global look-ups. It holds the allowed builtins, the guarded ones and the helpers of
:mod:`agex.sandbox.language.transformer`.

A check gets a receiver and a name and returns the object that the attribute is read from: the receiver
itself, or a *door*, an object whose one attribute is the guarded value.

A check refuses by raising :class:`~agex.errors.SandboxAttributeError`, never by a default value.
"""

from __future__ import annotations

import builtins as host
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.errors import SandboxAttributeError
from agex.sandbox.classes import host_classes
from agex.sandbox.classes.class_registry import ClassRegistry
from agex.sandbox.classes.errors import described, refusal, unwritable
from agex.sandbox.classes.guest_type import PLAIN, GuestType, stand_in
from agex.sandbox.classes.identity import is_proxy, referent
from agex.sandbox.classes.sealed_classes import sealed, unsealed_exceptions
from agex.sandbox.classes.super_lookup import super_answers, super_self, super_shares
from agex.sandbox.guards import attribute_doors, strict_checks
from agex.sandbox.guards.builtins import STATIC, BuiltinGuards
from agex.sandbox.guards.import_statement import Importer
from agex.sandbox.guards.receivers import CheckedReceiver
from agex.sandbox.guards.verdict_cache import Verdicts
from agex.sandbox.guards.workspace_modules import Compile, Imports
from agex.sandbox.language import match_patterns
from agex.sandbox.language.annotations import noted
from agex.sandbox.policy import browser, library_classes
from agex.sandbox.policy.library_members import member_door
from agex.sandbox.policy.module_grant import is_for_guests
from agex.sandbox.policy.policy import Policy
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.deadline import RUNNING
from agex.sandbox.runtime.kill_switch import Switch
from agex.sandbox.runtime.limits import Stop
from agex.sandbox.stdlib.builtins import plain_open
from agex.sandbox.stdlib.generic_alias import ALIAS_OWN, is_alias, origin_of

if TYPE_CHECKING:
    from contextvars import Context

    from agex.sandbox.classes.host_calls import Hooks
    from agex.sandbox.runtime.workspace_files import Files, GuestFiles

__all__ = ["Guards"]

_MOST_PATTERNS = 256
"""Stand-ins for class patterns that a session keeps, at most."""

_BUILTINS_OF = types.FunctionType.__dict__["__builtins__"].__get__


class Guards(BuiltinGuards):
    """The checks and builtins of one session."""

    def __init__(
        self, policy: Policy, hooks: Hooks, stop: Callable[[], NoReturn], caught: Callable[[], None]
    ) -> None:
        self.policy = policy
        self.hooks = hooks
        self.importer = Importer(policy, self)
        self._patterns: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._verdicts = Verdicts()
        self.closures: dict[tuple[Any, int], tuple[Any, Any]] = {}
        """Guards of functions that classes hold, with those functions."""
        self.held: dict[tuple[int, int], tuple[Any, Any]] = {}
        """Guards of a strict policy, with the members that they guard."""
        self.notes: dict[str, Any] = {}
        """Notes of guarded modules about the session; a table by session would keep the session alive."""
        self.files: GuestFiles | None = None
        """The workspace, if the session has one."""
        self.run: Context | None = None
        """The context of the current run."""
        self.threads: set[int] = set()
        """Threads of libraries that run code for this run."""
        self.program: types.CodeType | None = None
        """The program that the session runs, or ran last."""
        self.sources: dict[str, list[str]] = {}  # by the name of the file
        self.classes = ClassRegistry(policy.restricts, policy.leaves_out, library_classes)
        self._registered = policy.text
        self.builtins: dict[str, Any] = {
            **STATIC,
            "stop!": RUNNING,
            "Stop!": Stop,
            "trip!": stop,
            "caught!": caught,
            "catches!": unsealed_exceptions,
            "type!": type,
            "super!": super,
            "subject!": super_self,
            "own!": self.classes.own,
            "ok!": self.classes.trusted,
            "asked!": functools.partial(CheckedReceiver, self),
            "check!": self.check,
            "store!": self.check_store,
            "delete!": self.check_delete,
            "pattern!": self.pattern,
            "late!": match_patterns.Late,
            "named!": self.named_pattern,
            "path!": self.path_value,
            "noted!": noted,
            "dressed!": self.classes.dressed,
            "value!": None,
            "__build_class__": self.classes.build(host.__build_class__),
            "__import__": self.import_,
            "type": GuestType,
            "__name__": self.classes.builtins_name,
            **self.session_builtins(),
        }
        self.classes.builtins = self.builtins
        self.switch = Switch(self.builtins)
        self.builtins["listed!"] = self.switch.enlist
        self.builtins.update(self._shown(policy.names))

    def use_files(self, files: Files, outside: Callable[..., Any], compile_file: Compile) -> None:
        """Take a workspace: guest code gets ``open``, its modules, and standard modules for files."""
        self.policy.use_paths()
        own: GuestFiles = files.guarded(outside)
        self.files = own
        self.builtins["open"] = plain_open(own)
        over_files = files.modules(own) if self.policy.is_standard else None
        self.importer.use_files(Imports(self, own, compile_file), over_files)

    def _shown(self, names: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.shown(value) for name, value in names.items()}

    def shown(self, value: Any) -> Any:
        """Return a value as a variable of guest code: a metaclass or sealed class by its stand-in."""
        if not issubclass(type(value), type):
            return value
        return stand_in(value) if issubclass(value, type) else self.shown_class(value)

    def shown_class(self, class_: type) -> type:
        """Return a class as guest code may hold it: a sealed class cannot be called."""
        is_sealed = not self.classes.is_guest(class_) and self.policy.is_sealed(class_)
        return sealed(class_) if is_sealed else class_

    # -- loads ---------------------------------------------------------------------

    def check(self, receiver: Any, name: str) -> Any:
        """Decide about a read of a private or contested name; for a strict policy, of any name."""
        class_, rules = type(receiver), self.policy.text
        if self._verdicts.may_read(rules, receiver, name):
            return receiver
        if browser.IS_HERE and browser.belongs_to_it(receiver, name):
            raise refusal(receiver, name)
        if is_proxy(class_):
            given = self.check(behind := referent(receiver), name)
            return receiver if given is behind else given
        if rules.strict and issubclass(class_, types.ModuleType):
            self.check_module(receiver)
        private = ledger.is_private(name)
        if not private and name not in rules.contested:
            return self._check_strictly(receiver, name)
        if type(class_) is type and class_ in PLAIN and name in rules.only_elsewhere:
            return receiver
        origin = receiver if name in ALIAS_OWN else origin_of(receiver)
        if origin is not receiver and self.check(origin, name) is not origin:
            raise refusal(receiver, name)  # an alias hands the read on
        if private:
            if not self._owns_private(receiver, name):
                raise refusal(receiver, name)
            if self.classes.is_guest(class_):
                self._verdicts.let_read(receiver, name)
            return receiver
        self._check_rules(receiver, name)
        door: Callable[[Guards, Any, str], Any] = attribute_doors.DOORS.get(name, member_door)
        given = door(self, receiver, name)
        if given is receiver and door is member_door:
            self._verdicts.let_read(receiver, name)
        return strict_checks.held(self, receiver, name, given) if rules.strict else given

    def _check_strictly(self, receiver: Any, name: str) -> Any:
        """Decide about a name that is neither private nor contested, for a strict policy."""
        class_ = type(receiver)
        if issubclass(class_, types.ModuleType):
            self._verdicts.let_read(receiver, name)
            return receiver
        if issubclass(class_, super):
            self._check_rules(receiver, name)
            return strict_checks.held(self, receiver, name, receiver)
        origin = origin_of(receiver)
        if origin is not receiver:
            given = self.check(origin, name)
            return receiver if given is origin else given
        if not strict_checks.defines(self, receiver, name):
            self._check_rules(receiver, name)
        if not self.classes.is_mixed(class_):
            self._verdicts.let_read(receiver, name)
        return strict_checks.held(self, receiver, name, receiver)

    def check_module(self, module: types.ModuleType) -> None:
        """Refuse a real module that an object led to: imported modules are copies.

        A strict policy refuses any module that is no copy: it may not be in ``sys.modules``.
        """
        name = types.ModuleType.__getattribute__(module, "__dict__").get("__name__")
        is_hosts = type(name) is str and sys.modules.get(name) is module
        is_hosts |= self.policy.strict and not is_for_guests(module)
        if is_hosts and not self._owns_module(module):
            raise SandboxAttributeError(
                f"the module {name!r} was not registered for this code; use what can be imported"
            )

    def _check_rules(self, receiver: Any, name: str) -> None:
        """Refuse a member that a registration excludes."""
        subject = receiver
        if issubclass(type(receiver), super):
            subject = super_self(receiver)
            if self.classes.is_guest(super_answers(receiver, name)):
                return
        for owner in (subject, type(subject)) if issubclass(type(subject), type) else (type(subject),):
            if self.policy.denies(owner, name) and not self.classes.is_pure(owner):
                raise refusal(receiver, name, self.policy.instead(owner, name))

    def renew(self) -> None:
        """Take over registrations since the last run."""
        self.policy.prepare()
        if self._registered is not (registered := self.policy.text):
            self.classes.reconsider()
            self._registered = registered  # last: if interrupted before, the next run does it

    def _owns_private(self, receiver: Any, name: str) -> bool:
        """Return whether a private name of a receiver belongs to guest code."""
        if type(receiver) is types.FunctionType:
            return self.is_guest_function(receiver)
        if type(receiver) is types.ModuleType:
            return self._owns_module(receiver)
        if type(receiver) is super:
            if super_shares(receiver, name):
                return False
            receiver = super_self(receiver)
        owner = receiver if issubclass(type(receiver), type) else type(receiver)
        if self.classes.is_pure(owner):
            return True
        return self.classes.is_mixed(owner) and name not in self.classes.host_names(owner)

    def is_listed(self, value: Any, name: str) -> bool:
        if ledger.is_denied(name) or self.policy.denies(type(value), name):
            return False
        if name.startswith("__") and name.endswith("__") and _is_of_host(value):
            return False  # a registered class: only its own members are worth a list
        return not ledger.is_private(name) or self._owns_private(value, name)

    def _owns_module(self, module: types.ModuleType) -> bool:
        return self.imports is not None and self.imports.owns(module)

    def is_guest_function(self, function: Any) -> bool:
        """Return whether a function was compiled for this session."""
        return type(function) is types.FunctionType and _BUILTINS_OF(function) is self.builtins

    def is_own(self, receiver: Any) -> bool:
        """Return whether a receiver is a pure guest class or an instance of one."""
        return self.classes.is_pure(receiver if issubclass(type(receiver), type) else type(receiver))

    # -- stores --------------------------------------------------------------------

    def check_store(self, receiver: Any, name: str) -> Any:
        """Decide about an assignment to an attribute."""
        if self._verdicts.may_store(self.policy.text, receiver, name):
            return receiver
        if not self._may_write(receiver, name):
            raise unwritable(receiver, name, self.policy.instead(type(receiver), name))
        if issubclass(type(receiver), type):
            self.alter(receiver, name)
        elif library_classes.decides_stores(name):
            return library_classes.stored_on(receiver, name)
        else:
            self._verdicts.let_store(receiver, name)
        return receiver

    def alter(self, class_: type, name: str) -> None:
        """Note that an attribute of a guest class is set or deleted."""
        self._verdicts.forget_stores()
        self.classes.alter(class_, name)

    check_delete = check_store

    def _may_write(self, receiver: Any, name: str) -> bool:
        class_ = type(receiver)
        if issubclass(type(receiver), type):
            may_store = self.classes.may_store_on_class(receiver, name)
            return may_store and not library_classes.is_settings(receiver, name)
        if type(receiver) is types.FunctionType:
            return self.is_guest_function(receiver)
        if self.classes.is_pure(class_):
            return True
        if self.classes.is_mixed(class_):
            return not self._hides_method(class_, name) and name not in self.classes.host_names(class_)
        if ledger.is_dunder(name):
            return issubclass(type(receiver), BaseException)
        if issubclass(type(receiver), BaseException) and host_classes.is_static(class_):
            return not ledger.is_private(name) and not self._hides_method(class_, name)
        if type(receiver) is types.ModuleType:
            return self._owns_module(receiver)
        if name.startswith("_") or issubclass(type(receiver), types.ModuleType):
            return False
        if is_alias(receiver):  # it hands the store on
            origin = origin_of(receiver)
            return self.is_own(origin) and self._may_write(origin, name)
        return (
            self.policy.is_writable(class_, name)
            and not self.policy.denies(class_, name)
            and not self._hides_method(class_, name)
        )

    def _hides_method(self, class_: type, name: str) -> bool:
        """Return whether *name* is a method of a host class among the bases."""
        for base in mro_of(class_):
            if name in namespace_of(base):
                return not self.classes.is_guest(base) and host_classes.is_method(namespace_of(base)[name])
        return False

    # -- imports -------------------------------------------------------------------

    @property
    def imports(self) -> Imports | None:
        """The guest modules, if the session has a workspace."""
        return self.importer.own

    # -- match ---------------------------------------------------------------------

    def pattern(self, class_: Any, has_positional: bool, *watched: str) -> Any:
        """Return the class that a class pattern is matched with.

        The interpreter reads ``__match_args__`` from the class and those attributes from the subject, without
        a check in between. A stand-in has fixed, checked ``__match_args__`` and answers ``isinstance`` for
        the class.
        """
        if not issubclass(type(class_), type):
            return class_  # the interpreter raises
        is_guest = self.classes.is_guest(class_)
        found = match_patterns.known_match_args(class_, is_guest=is_guest) if has_positional else ()
        if found is match_patterns.UNKNOWN:
            return match_patterns.late_stand_in(self, class_, watched)
        key = (id(class_), found, has_positional, watched)
        rules, matched, known = self._patterns.get(key, (None, None, None))
        if rules is not self.policy.text or matched is not class_:
            rules, known = self.policy.text, class_  # its __match_args__ cannot change
            delicate = match_patterns.delicate_names(rules, found or (), watched)
            if delicate or (is_guest and has_positional):
                known = match_patterns.stand_in(self, class_, found, delicate)
            if len(self._patterns) > _MOST_PATTERNS:
                self._patterns.clear()
            self._patterns[key] = rules, class_, known
        return known

    def check_matched(self, subject: Any, delicate: tuple[str, ...]) -> None:
        """Refuse a class pattern that reads a guarded name of *subject*."""
        for name in delicate:
            if self.readable(subject, name) is not subject:
                raise SandboxAttributeError(f"attribute '{name}' of {described(subject)} cannot be matched")

    def named_pattern(self, elsewhere: Callable[[], Any], path: str, *said: Any) -> Any:
        """Return the class of a pattern named in the calling scope; else the result of *elsewhere*."""
        first, *rest = path.split(".")
        try:
            class_ = sys._getframe(1).f_locals[first]  # pyright: ignore[reportPrivateUsage] - the scope
        except KeyError:
            return elsewhere()
        return self.pattern(functools.reduce(self.getattr, rest, class_), *said)

    def path_value(self, elsewhere: Callable[[], Any], path: str) -> Any:
        """Return the value of a dotted name in a pattern; that of *elsewhere* if the scope has none."""
        first, *rest = path.split(".")
        try:
            value = sys._getframe(1).f_locals[first]  # pyright: ignore[reportPrivateUsage] - the scope
        except KeyError:
            return elsewhere()
        return functools.reduce(self.getattr, rest, value)


def _is_of_host(value: Any) -> bool:
    """Return whether a value is a class of the host or a library, or an instance of one."""
    class_ = value if issubclass(type(value), type) else type(value)
    home = module_of(class_)
    is_standard = type(home) is str and home.partition(".")[0] in sys.stdlib_module_names
    return not (is_standard or provenance.is_guest_class(class_))
