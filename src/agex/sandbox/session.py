"""A namespace in which guest code runs, once or many times."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxError
from agex.sandbox.language.compiler import compile_module
from agex.sandbox.module_variables import ModuleVariables
from agex.sandbox.policy import library_classes
from agex.sandbox.policy.policy import Policy
from agex.sandbox.program_exit import require_good_end
from agex.sandbox.rules.ruleset import Rules
from agex.sandbox.run import Runner
from agex.sandbox.runtime.limits import Limits
from agex.sandbox.runtime.output import Output, echo_text
from agex.sandbox.runtime.result import Result
from agex.sandbox.runtime.scopes import defined_in, is_bindable
from agex.sandbox.stdlib.guest_facts import AT_EXIT

if TYPE_CHECKING:
    from agex.sandbox.guards.import_statement import Importer
    from agex.sandbox.runtime.workspace_files import Files, GuestFiles

__all__ = ["Session"]


class Session(Runner):
    """A namespace, its guards and its limits.

    Functions of an earlier run see the variables of a later one, as in a REPL. A session
    is for one thread at a time; `interrupt` may be called from any.
    """

    packs = False
    """Whether variables are given back as `agex.values.Packed`: the objects themselves are here."""

    def __init__(
        self,
        policy: Policy,
        limits: Limits,
        namespace: Mapping[str, Any],
        *,
        files: Files | None = None,
        output: Callable[[int], Output] = Output,
    ) -> None:
        super().__init__(policy, limits, output)
        self.files = files
        """The workspace, as the host gave it."""
        self.add(namespace)
        if files is not None:
            from agex.sandbox.runtime.workspace_files import outside

            self._guards.use_files(files, outside, self._compile_file)

    def begin(self) -> None:
        """Do nothing: it is open."""

    def open(self) -> None:
        """Do nothing: it is open."""

    def close(self) -> None:
        """Do nothing: a session in this process ends with the last reference to it."""

    # -- names ---------------------------------------------------------------------

    @property
    def kept(self) -> dict[str, Any]:
        """Variables that were bound to be given back: none, as the objects themselves are here."""
        return {}

    def bind(self, name: str, value: Any) -> None:
        """Bind a name as a builtin: guest code may shadow it, and it is not part of `namespace`."""
        self._check_name(name)
        self._builtins[name] = self._guards.shown(value)

    def _check_name(self, name: str) -> None:
        if not is_bindable(name):
            raise SandboxError(f"{name!r} cannot be a variable of guest code; choose another name")

    @property
    def defined(self) -> frozenset[str]:
        """Names that the last run bound by ``def`` or ``class`` at its top level."""
        program = self._guards.program
        return frozenset() if program is None else frozenset(defined_in(program))

    @property
    def guest_files(self) -> GuestFiles | None:
        """The workspace as guest code has it."""
        return self._guards.files

    @property
    def builtins(self) -> Mapping[str, Any]:
        """The names that guest code finds beside its own variables."""
        return self._builtins

    def add(self, names: Mapping[str, Any]) -> None:
        """Bind variables of guest code."""
        for name, value in names.items():
            self._check_name(name)
            self.globals[name] = self._guards.shown(value)

    def look_up(self, name: str) -> Any:
        """Return a variable of guest code; None where there is none."""
        return self.namespace.get(name)

    def imported(self, name: str, *, run: bool = False) -> Any:
        """Return a module as guest code gets it, see `ModuleVariables.imported`."""
        return self._modules.imported(name, run=run)

    @property
    def modules(self) -> dict[str, str]:
        """The variables that are modules, each with the names to import for it."""
        return self._modules.bound()

    def import_again(self, modules: Mapping[str, str]) -> None:
        """Bind variables to modules as an earlier session had them, under the grants of this one."""
        self._modules.restore(modules)

    @functools.cached_property
    def _modules(self) -> ModuleVariables:
        return ModuleVariables(self, self._guards)

    @property
    def importer(self) -> Importer:
        """Finds the modules that guest code imports."""
        return self._guards.importer

    def is_guest_function(self, value: object) -> bool:
        """Return whether *value* is a function that guest code defined."""
        return self._guards.is_guest_function(value)

    # -- running -------------------------------------------------------------------

    def run(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Run a program. An error of guest code is in the result and not raised."""

        def work(result: Result) -> None:
            code = self._compile(source, filename, self._policy.text, echo=echo)
            with self._program():
                exec(code, self.globals)  # noqa: S102 - rewritten code
            self._take_value(result)

        return self._guarded(work)

    async def arun(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Like `run`, with ``await`` allowed at the top level, in the caller's event loop."""

        async def work(result: Result) -> None:
            code = self._compile(source, filename, self._policy.text, echo=echo, top_level_await=True)
            with self._program():
                value = eval(code, self.globals)  # noqa: S307 - rewritten code
                if isinstance(value, types.CoroutineType):
                    await value
            self._take_value(result)

        return await self._aguarded(work)

    @contextlib.contextmanager
    def _program(self) -> Iterator[None]:
        """Run a program in the block: ``sys.exit()`` ends it, and functions of ``atexit`` are called then."""
        try:
            try:
                yield
            finally:
                self._call_at_exit()
        except SystemExit as ending:
            self.globals.pop("value!", None)
            require_good_end(ending)

    def _call_at_exit(self) -> None:
        """Call what the program registered by ``atexit``, the last first."""
        calls = self._guards.notes.pop(AT_EXIT, None)
        while calls:
            function, args, kwargs = calls.pop()
            function(*args, **kwargs)

    def define(self, source: str, filename: str, namespace: dict[str, Any], *, main: bool = False) -> Result:
        """Run a program in a namespace of its own. Its functions and classes are guest code of this session.

        With *main* it is a program of its own, and `defined` does not name its definitions.
        """

        def work(result: Result) -> None:
            namespace.update(__builtins__=self._builtins, __name__=self.globals["__name__"])
            if main:
                code = self._compile_file(source, filename)
            else:
                code = self._compile(source, filename, self._policy.text._replace(lists=False), echo=False)
            with self._program():
                exec(code, namespace)  # noqa: S102 - rewritten code

        return self._guarded(work)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Call a function or class of guest code, under the same limits."""

        def work(result: Result) -> None:
            result.value = function(*args, **kwargs)

        return self._guarded(work)

    async def acall(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Like `call`; an awaitable that the function returns is awaited."""
        import inspect

        async def work(result: Result) -> None:
            value = function(*args, **kwargs)
            result.value = await value if inspect.isawaitable(value) else value

        return await self._aguarded(work)

    def _compile(
        self, source: str, filename: str, rules: Rules, *, echo: bool, top_level_await: bool = False
    ) -> types.CodeType:
        self.note_file(filename, source)
        code = compile_module(source, filename, rules, echo=echo, flat=True, top_level_await=top_level_await)
        self._guards.program = code
        return code

    def _compile_file(self, source: str, filename: str) -> types.CodeType:
        self.note_file(filename, source)
        return compile_module(source, filename, self._policy.text, echo=False, flat=True)

    def _take_value(self, result: Result) -> None:
        result.value = self.globals.pop("value!", None)
        if result.value is not None:
            result.echo = echo_text(result.value, self._limits.output_chars)

    def store_on_class(self, class_: type, name: str, value: Any) -> None:
        """Set an attribute of a guest class, as guest code did after its class statement."""
        library_classes.check_stored(class_, name, value)
        self._guards.alter(class_, name)
        type.__setattr__(class_, name, value)
        self._hooks.stored(class_, name, value)
