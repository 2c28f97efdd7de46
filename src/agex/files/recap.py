"""A workspace in a few lines: the agent's own modules with their signatures, then files."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agex._interpreter import syntax_trees
from agex.escaping import line
from agex.files.file_tree import FileTree

__all__ = ["recap"]

_SIGNATURES = 12
"""Of one module, before the rest is counted."""
_LONGEST_SOURCE = 256 * 1024  # bytes: a module that a model wrote is far smaller
_LINE = 110


def recap(files: FileTree, chars: int) -> str:
    """Describe a workspace in about *chars* characters; empty for an empty one.

    Modules come first, each with the signatures and the first line of the docstring of what it
    defines. What does not fit is counted, so a large workspace costs no more than a small one.
    """
    paths = [path for path in files.list("/", recursive=True) if not path.startswith("skills/")]
    sources = [path for path in paths if path.endswith(".py")]
    blocks = (_module(path, files.read(f"/{path}")) for path in sources if _is_module(files, path))
    others = (_entry(files, path) for path in paths if not path.endswith(".py"))
    parts = [
        _fitted("Your modules:", blocks, chars * 2 // 3, len(sources), "modules"),
        _fitted(
            "Files:", filter(None, others), chars // 3, len(paths) - len(sources), "files and directories"
        ),
    ]
    return "\n".join(part for part in parts if part)


def _fitted(heading: str, blocks: Iterator[str], chars: int, count: int, what: str) -> str:
    """Return a heading and as many of the blocks as fit; the rest is not even looked at."""
    kept: list[str] = []
    for block in blocks:
        chars -= len(block) + 1
        if chars < 0:
            kept.append(f"... of {count} {what}; list them with os.walk('/')")
            break
        kept.append(block)
    return "\n".join([heading, *kept]) if kept else ""


def _is_module(files: FileTree, path: str) -> bool:
    return files.isfile(f"/{path}") and files.getsize(f"/{path}") <= _LONGEST_SOURCE


def _entry(files: FileTree, path: str) -> str:
    """Return a line for a file; nothing for a directory, which is seen by what is in it."""
    return f"{line(path)} ({_size(files.getsize(f'/{path}'))})" if files.isfile(f"/{path}") else ""


def _module(path: str, source: bytes) -> str:
    name = line(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    shown_path = line(path)
    try:
        tree = syntax_trees.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"{name}  ({shown_path}; it has a syntax error)"
    lines = list(_definitions(tree))
    rest = len(lines) - _SIGNATURES
    shown = [*lines[:_SIGNATURES], *([f"    ... {rest} more"] if rest > 0 else [])]
    return "\n".join([f"{name}  ({shown_path}){_about(tree)}", *shown])


def _definitions(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield f"    {_signature(node)}{_about(node)}"
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield f"    class {node.name}{_about(node)}"
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    yield f"        {_signature(method)}{_about(method)}"


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    text = line(f"{kind} {node.name}({ast.unparse(node.args)}){returns}")
    return text if len(text) <= _LINE else f"{kind} {node.name}(...)"


def _about(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    doc = (ast.get_docstring(node) or "").strip().split("\n")[0][:_LINE]
    return f": {line(doc)}" if doc else ""


def _size(size: int) -> str:
    return f"{size} bytes" if size < 10_000 else f"{size / 1024:,.0f} KiB"
