"""Servers of the Model Context Protocol as modules of Python functions.

What a server says of itself and of its tools is the text of a stranger: names become
identifiers, descriptions one bounded line, and neither is ever run as code. This room never
answers a server's own requests (for samples, for files, for the user's input) and knows
nothing of agents. The other direction, tasks as tools, is ``agex serve-mcp``.
"""

from agex.mcp.server import ToolServer

__all__ = ["ToolServer"]
