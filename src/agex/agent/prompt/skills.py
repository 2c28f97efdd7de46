"""Skills and commands of the terminal, as they are registered and as the prompt lists them."""

from __future__ import annotations

import inspect
import re
import textwrap
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from agex.agent.registration import Visibility, is_async
from agex.errors import DefinitionError
from agex.escaping import line
from agex.shell import TerminalCommand, is_usual

if TYPE_CHECKING:
    from agex.files.skill import Skill

__all__ = ["listed", "new_command"]

_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def new_command(
    handler: Any,
    name: str,
    others: Sequence[TerminalCommand],
    *,
    visibility: Visibility = "medium",
    **settings: Any,
) -> TerminalCommand:
    """Make a command of the terminal.

    Raises:
        DefinitionError: it is no function, or the name cannot be a command's.
    """
    if not callable(handler) or is_async(handler):
        raise DefinitionError(f"agent.terminal() takes a plain function of one argument, not {handler!r}.")
    _require_one_argument(handler, name)
    if not _NAME.fullmatch(name):
        raise DefinitionError(f"{name!r} cannot be a command; give another name, e.g. name='build'.")
    if any(one.name == name for one in others):
        raise DefinitionError(f"There is a command {name!r} already; register this one as name=...")
    if visibility not in get_args(Visibility):
        raise DefinitionError(f"visibility={visibility!r} is none of: {', '.join(get_args(Visibility))}.")
    if is_usual(name):
        warnings.warn(
            f"The command {name!r} stands in for the usual one of that name; give name= to keep both.",
            stacklevel=3,
        )
    return TerminalCommand(name=name, handler=handler, visibility=visibility, **settings)


def _require_one_argument(handler: Any, name: str) -> None:
    try:
        inspect.signature(handler).bind(None)
    except TypeError as error:
        raise DefinitionError(
            f"agent.terminal(): {name} is called with one argument, the context: write def {name}(context): "
            f"... ({error})"
        ) from None
    except ValueError:  # a builtin need not say what it takes
        return


def listed(skills: Sequence[Skill], commands: Sequence[TerminalCommand]) -> str:
    """Return the part of the prompt on skills and commands; empty where there are none."""
    shown = [one for one in commands if one.visibility != "low"]
    parts = []
    if skills:
        lines = [f"- {line(one.name)}: {line(one.description)}" for one in skills]
        parts.append(
            "\n".join(["Skills: read /skills/NAME/SKILL.md before you do what it is about.", *lines])
        )
    if shown:
        parts.append(
            "\n".join(
                ["Commands of the terminal, beside the usual ones (NAME --help):", *map(_command, shown)]
            )
        )
    return "\n\n".join(parts)


def _command(one: TerminalCommand) -> str:
    first, _, rest = one.doc.partition("\n")
    text = f"- {one.name}: {line(first)}" if first else f"- {one.name}"
    if one.visibility == "high" and rest.strip():
        text += "\n" + textwrap.indent(rest.strip("\n"), "    ")
    return text
