"""Policy of jinja2: a template reads what the code of its session may read, and writes no files.

Environments derive from jinja2's sandbox, with the session's attribute check in place of the sandbox's own.
Templates become Python programs. Syntax trees, generators and extensions are out, because they could write
into these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

from agex.errors import SandboxAttributeError, SandboxError
from agex.sandbox.patches.replacement import replace
from agex.sandbox.policy.library import Library, Replacements, only
from agex.sandbox.runtime.context import calling, maker
from agex.sandbox.stdlib.plain_values import text_for

__all__ = ["LIBRARIES"]

_MODULES = {
    "": only(
        "ChainableUndefined ChoiceLoader DebugUndefined DictLoader Environment FileSystemLoader",
        "FunctionLoader PrefixLoader StrictUndefined Template TemplateAssertionError TemplateError",
        "TemplateNotFound TemplateRuntimeError TemplateSyntaxError TemplatesNotFound Undefined",
        "UndefinedError is_undefined pass_context pass_environment pass_eval_context select_autoescape",
    ),
    "exceptions": only("*Error *NotFound"),
    "sandbox": only("ImmutableSandboxedEnvironment SandboxedEnvironment SecurityError"),
}
"""Not listed: compiler, nodes, ext, parser (write programs), bytecode caches, loaders of modules."""

_EXTENSIONS = frozenset({"jinja2.ext.do", "jinja2.ext.loopcontrols"})

_LEFT_OUT = ("bytecode_cache", "enable_async")


@functools.cache
def _environment() -> type:
    """Return the class of environments, made when jinja2 is loaded."""
    nodes: Any = import_module("jinja2.nodes")
    sandbox: Any = import_module("jinja2.sandbox")

    class Environment(sandbox.ImmutableSandboxedEnvironment):  # type: ignore[misc]
        """An environment whose templates read attributes by the check of one session."""

        def __init__(self, check: Callable[[Any, str], Any], /, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._check = check
            self.filters["attr"] = self.attribute

        def attribute(self, obj: Any, name: str) -> Any:
            """Read an attribute; a missing one is undefined."""
            name = text_for("attr", name)
            if not name.startswith("_"):  # also where the code itself may read it: templates come from others
                try:
                    return self._check(obj, name)
                except SandboxAttributeError as error:
                    raise sandbox.SecurityError(str(error)) from None
                except AttributeError:
                    return self.undefined(obj=obj, name=name)
            return self.unsafe_undefined(obj, name)

        def getattr(self, obj: Any, attribute: str) -> Any:
            found = self.attribute(obj, attribute)
            if isinstance(found, self.undefined):
                try:
                    return obj[attribute]
                except (TypeError, LookupError):
                    pass
            return found

        def getitem(self, obj: Any, argument: Any) -> Any:
            try:
                return obj[argument]
            except (TypeError, LookupError):
                is_name = isinstance(argument, str)
                return self.attribute(obj, argument) if is_name else self.undefined(obj=obj, name=argument)

        def compile(self, source: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
            """Compile text, without the file name that a loader gives."""
            is_tree = type(source) is nodes.Template  # from `compile_expression`: guest code has no trees
            return super().compile(source if is_tree else text_for("compile", source), name)

    Environment.__module__ = "jinja2.environment"  # the rules of that module hold for it
    return Environment


def _made(*args: Any, **kwargs: Any) -> Any:
    """Return a new environment of the session that asks."""
    if len(args) > 0:
        raise SandboxError("Environment() takes its options by name here")
    for name in _LEFT_OUT:
        if kwargs.get(name):
            raise SandboxError(f"Environment({name}=...) is not available; leave {name} out")
    for extension in kwargs.get("extensions", ()):
        if type(extension) is not str or extension not in _EXTENSIONS:
            raise SandboxError(f"Environment() takes the extensions {sorted(_EXTENSIONS)} here")
    return _environment()(maker("jinja2.Environment").getattr, **kwargs)


def _template(source: Any, **kwargs: Any) -> Any:
    """Return a new template, in an environment of its own."""
    return _made(**kwargs).from_string(source)


def _prepare() -> None:
    """Refuse guest text as templates of host environments, which may be inputs."""
    environment: Any = import_module("jinja2.environment")
    for name in ("from_string", "compile_expression"):
        replace(environment.Environment, name, _of_hosts)
    replace(environment.Template, "__new__", _of_hosts)


def _of_hosts(real: Any) -> Any:
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        if calling() is not None and not isinstance(self, _environment()):
            raise SandboxError(
                "text of this code is no template of the host's environment; make an environment of your "
                "own, where jinja2 is registered: jinja2.Environment().from_string(text)"
            )
        return real(self, *args, **kwargs)

    return make


def _replace(files: bool) -> Replacements:
    def named(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs)

        call.__name__ = call.__qualname__ = name
        return call

    sandboxed = ("SandboxedEnvironment", "ImmutableSandboxedEnvironment")
    return {
        "": {"Environment": named("Environment", _made), "Template": named("Template", _template)},
        "sandbox": {name: named(name, _made) for name in sandboxed},
    }


def _from_text(real: Any, source: Any, globals: Mapping[str, Any] | None = None) -> Any:  # noqa: A002 - its name
    """Make a template of text only: a syntax tree could hold a program."""
    return real(text_for("from_string", source), globals)


def _expression(real: Any, source: Any, undefined_to_none: bool = True) -> Any:
    return real(text_for("compile_expression", source), undefined_to_none)


def _overlaid(real: Any, **kwargs: Any) -> NoReturn:
    raise SandboxError("overlay() is not available; make another Environment")


LIBRARIES = {
    "jinja2": Library(
        name="jinja2",
        modules=_MODULES,
        # write files; return or take syntax trees, programs and generators; read the environment
        denied=frozenset(
            """
            Environment.add_extension Environment.call_filter Environment.compile
            Environment.compile_templates Environment.extend Environment.lex Environment.parse
            Environment.preprocess Environment.iter_extensions Environment.code_generator_class
            Environment.context_class Environment.template_class Environment.concat
            Environment.bytecode_cache Environment.shared Environment.handle_exception
            Template.from_code Template.from_module_dict Template.root_render_func Template.blocks
            Template.new_context Template.environment_class
            TemplateStream.dump BaseLoader.load
            FileSystemLoader.load ChoiceLoader.load PrefixLoader.load
            """.split()
        ),
        guarded={
            "Environment.from_string": _from_text,
            "Environment.compile_expression": _expression,
            "Environment.overlay": _overlaid,
        },
        whole=frozenset({"Environment", "Template"}),
        sealed=(
            "jinja2.environment.Environment",
            "jinja2.environment.Template",
            "jinja2.nativetypes.NativeEnvironment",
            "jinja2.nativetypes.NativeTemplate",
            "jinja2.sandbox.ImmutableSandboxedEnvironment",
            "jinja2.sandbox.SandboxedEnvironment",
        ),
        preload=("jinja2.sandbox", "jinja2.ext"),
        prepare=_prepare,
        replace=_replace,
    )
}
