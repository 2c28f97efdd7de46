"""The imports between rooms, and between the sub-rooms of a room, as text.

    python tools/import_map.py            print the maps
    python tools/import_map.py --write    put them into docs/design/0017-a-house-of-sub-rooms.md

Imports for type checkers and inside functions count as others do. A circle is an error.
"""

from __future__ import annotations

import ast
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "design" / "0017-a-house-of-sub-rooms.md"
BEGIN, END = "<!-- import map: begin -->\n", "<!-- import map: end -->\n"
ROOMS = ("agex", "agex.sandbox", "agex.values", "agex.isolation", "agex.state", "agex.agent")
# The types of `error.run` and `error.call`, for users' checkers.
LEFT_OUT = {("agex.errors", "agex.agent.task.run"), ("agex.errors", "agex.agent.durable.host_calls")}


def modules() -> dict[str, Path]:
    """Return every module of the package and its file."""
    source = ROOT / "src"
    found = {".".join(path.relative_to(source).with_suffix("").parts): path for path in source.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Return the modules of the package that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("agex"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("agex."))


def part(module: str, room: str) -> str:
    """Return which part of a room a module belongs to."""
    return module.removeprefix(f"{room}.").partition(".")[0] if module != room else "__init__"


def edges(room: str, known: dict[str, Path]) -> set[tuple[str, str]]:
    """Return the imports between the parts of a room; its ``__init__`` gives names out and is left out."""
    found: set[tuple[str, str]] = set()
    for module, path in known.items():
        if not module.startswith(f"{room}."):
            continue
        for target in imports(path, known):
            if target.startswith(f"{room}.") and (module, target) not in LEFT_OUT:
                found.add((part(module, room), part(target, room)))
    return {edge for edge in found if edge[0] != edge[1]}


def picture(room: str, known: dict[str, Path]) -> str:
    """Return the parts of a room from the top to the bottom, each with what it imports.

    Raises:
        graphlib.CycleError: two parts import each other, directly or not.
    """
    found = edges(room, known)
    parts = {part(module, room) for module in known if module.startswith(f"{room}.")}
    below = {each: {target for source, target in found if source == each} for each in parts}
    graph = {each: sorted(below[each]) for each in sorted(parts)}
    order = list(graphlib.TopologicalSorter(graph).static_order())
    width = max(map(len, parts))
    lines = [room]
    for each in reversed(order):
        targets = sorted(below[each], key=order.index, reverse=True)
        said = ", ".join(targets)
        lines.append(f"  {each:{width}}  {'-> ' + said if said else ''}".rstrip())
    return "\n".join(lines)


def maps() -> str:
    """Return the maps of all rooms that have sub-rooms."""
    known = modules()
    return "\n\n".join(picture(room, known) for room in ROOMS)


def page(text: str) -> str:
    """Return the page with the maps of today."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}```text\n{maps()}\n```\n{END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(maps() + "\n")
