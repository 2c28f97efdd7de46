"""Libraries and functions that run text, or bytes, as code of the process.

The audit hook cannot tell this code from the library's own. So the host must name in `include` what it means.
jinja2, pandas and sympy have policies, which hand these functions out guarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agex.errors import DefinitionError
from agex.sandbox.policy.library_members import named

if TYPE_CHECKING:
    from agex.sandbox.policy.module_grant import Pattern

__all__ = ["without_evaluators"]

_WHOLE = {
    **dict.fromkeys(
        # expressions, formulas, programs
        "asteval cffi code codeop cython Cython formulaic numexpr patsy simpleeval".split(),
        "it runs text as code",
    ),
    **dict.fromkeys(
        "IPython bdb cProfile doctest pdb profile runpy timeit trace".split(), "it runs programs"
    ),
    # templates that are Python, or become it with nothing in between
    **dict.fromkeys("Cheetah chameleon genshi mako".split(), "its templates are programs"),
    # names in text become modules or their members; mock.patch() changes those for the process
    **dict.fromkeys(
        "importlib logging.config modulefinder pkgutil pydoc unittest zipimport".split(),
        "it loads whatever a text names",
    ),
    **dict.fromkeys("cloudpickle dill jsonpickle marshal pickle shelve".split(), "what it loads is code"),
}
"""Packages with that sole purpose, and why they are not registered as a whole."""

_HARMLESS = frozenset({"importlib.metadata", "importlib.resources"})
"""Modules of those packages that describe packages and run nothing."""

_PARTS = {
    "bottle": "SimpleTemplate SimpleTemplate.* jinja2_template load load_app mako_template run template view",
    "joblib": "load",
    "lmfit": "ExpressionModel",
    "mpmath": "identify *.identify",
    "statsmodels": "formula from_formula *.from_formula",
    "torch": "load compile jit hub",
    "tornado": "template",
    "yaml": """CFullLoader CLoader CUnsafeLoader Constructor FullConstructor FullLoader Loader
        UnsafeConstructor UnsafeLoader add_constructor add_implicit_resolver add_multi_constructor
        add_multi_representer add_path_resolver add_representer full_load full_load_all
        unsafe_load unsafe_load_all""",
}
"""Packages with such members among others; the members are left out in all modules of the package."""


def without_evaluators(module: str, include: Pattern, exclude: Pattern) -> Pattern:
    """Return the exclusions of a registration, with the evaluators that it does not name.

    Raises:
        DefinitionError: the whole package is an evaluator, and nothing of it is named.
    """
    root, said = module.partition(".")[0], named(include)
    whole = next((_WHOLE[name] for name in (root, module) if name in _WHOLE), None)
    if whole is not None and module not in _HARMLESS and not said:
        raise DefinitionError(
            f"{module} cannot be registered as a whole: {whole}, with your rights. Register functions "
            "of yours that use it, agent.fn(f), or name what you mean: "
            f"agent.module({module}, include=['...'])"
        )
    names = tuple(name for name in _PARTS.get(root, "").split() if name not in said)
    if not names:
        return exclude
    if callable(exclude):
        leaves_out = exclude
        return lambda name: name in names or leaves_out(name)
    return (*((exclude,) if isinstance(exclude, str) else exclude), *names)
