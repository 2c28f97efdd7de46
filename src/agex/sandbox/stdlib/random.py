"""``random`` and ``statistics`` for guest code: samples are drawn from a generator of the session.

The functions of the real ``random`` share one generator of the process with the host.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from agex.sandbox.classes import stand_ins
from agex.sandbox.patches import methods
from agex.sandbox.runtime.context import asking

__all__ = ["random_members", "statistics_members"]


def random_members() -> dict[str, Any]:
    """Return the functions of ``random`` over a new generator of the session."""
    import random

    methods.hold(random.Random, "setstate")
    generator = random.Random()  # noqa: S311 - what the guest asked for
    public = [name for name in dir(random.Random) if not name.startswith("_") and hasattr(random, name)]
    return {name: getattr(generator, name) for name in public}


# -- statistics


class _Random:
    """Stands in for the module ``random`` in the functions of ``statistics``."""

    def __getattr__(self, name: str) -> Any:
        import random

        guards = asking()
        granted = guards is not None and "random" in guards.policy.modules
        of_session = guards.import_("random") if guards is not None and granted else random
        return getattr(of_session, name)


@functools.cache
def statistics_members() -> dict[str, Any]:
    """Return the members of ``statistics`` that guest code gets."""
    import statistics

    names = {**vars(statistics), "random": _Random()}
    members = {
        name: _over(value, names)
        for name, value in vars(statistics.NormalDist).items()
        if not isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType))
    }
    made = names["NormalDist"] = type("NormalDist", (), members)
    return {"NormalDist": stand_ins.stands_for(statistics.NormalDist, made)}


def _over(value: Any, names: dict[str, Any]) -> Any:
    """Return a function of a class body, however it is wrapped, over other global names."""
    if isinstance(value, property):
        get, put, delete = (_over(part, names) for part in (value.fget, value.fset, value.fdel))
        return property(get, put, delete, value.__doc__)
    if isinstance(value, (classmethod, staticmethod)):
        return type(value)(_over(value.__func__, names))
    if not isinstance(value, types.FunctionType):
        return value
    made = types.FunctionType(value.__code__, names, value.__name__, value.__defaults__, value.__closure__)
    made.__kwdefaults__, made.__doc__ = value.__kwdefaults__, value.__doc__
    made.__qualname__, made.__annotations__ = value.__qualname__, dict(value.__annotations__)
    return made
