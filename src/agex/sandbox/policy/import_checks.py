"""The verdict on an import statement before the program runs, from the grants alone.

Only what no run can import is refused here. In doubt nothing is said, and the statement decides when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from agex.sandbox.policy.advice import instead_of_member, instead_of_module

if TYPE_CHECKING:
    from agex.sandbox.policy.module_grant import ModuleGrant
    from agex.sandbox.policy.policy import Policy

__all__ = ["refused_import"]


def refused_import(
    policy: Policy, name: str, members: Sequence[str] = (), *, others: Collection[str] = ()
) -> str | None:
    """Return why a module, or a member of it, cannot be imported; None where it can be, or in doubt.

    Args:
        policy: holds the grants.
        name: the module, by its absolute name.
        members: the names of a ``from`` import.
        others: modules that guest code has beside the grants: those over its workspace.
    """
    grants = policy.modules
    if name in others or any(
        f"{other}.".startswith(f"{name}.") for other in (*others, *grants) if other != name
    ):
        return None  # a package around a granted module may be empty
    if name not in grants:
        above = [grants[part] for part in _packages(name) if part in grants]
        if any(_submodule(grant, name) for grant in above):
            return None
        return f"import of '{name}' is not allowed; {instead_of_module(name, grants)}"
    return next(filter(None, (_refused_member(grants[name], name, each) for each in members)), None)


def _packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def _submodule(grant: ModuleGrant, name: str) -> bool:
    path = name.removeprefix(grant.module_name).lstrip(".")
    if not name.startswith(f"{grant.module_name}."):
        return True  # registered under another name
    return grant.submodule(path) is not None


def _refused_member(grant: ModuleGrant, name: str, member: str) -> str | None:
    if member == "*" or grant.root in sys.stdlib_module_names or grant.is_for_each_session:
        return None
    known = vars(grant.copy())
    if member in known or "__getattr__" in known or grant.submodule(member) is not None:
        return None
    instead = instead_of_member(name, member, known) or f"dir({name}) lists what is there"
    return f"cannot import name '{member}' from '{name}'; {instead}"
