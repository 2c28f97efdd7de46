"""Servers of the Model Context Protocol as modules of Python functions.

The texts of a server about itself and its tools are untrusted: names become identifiers,
descriptions one bounded line, and neither is ever run as code. This room never
answers a server's own requests (for samples, for files, for the user's input) and knows
nothing of agents. The other direction, tasks as tools, is ``agex serve-mcp``.

Reading order: ``server`` (the connection), ``tools`` (a server's tools as a module), ``schema`` (JSON Schema
as annotations) with ``typed_dicts``, ``json_values`` (arguments and results), ``conformity``.
"""

from agex.mcp.server import ToolServer

__all__ = ["ToolServer"]
