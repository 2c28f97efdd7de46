"""A terminal over a workspace: pipelines, redirects and commands, and never a real process.

The shell itself is termish. Here are what belongs to an agent: commands that the host adds, and
``python`` in the same sandbox as the agent's code.
"""

from agex.shell.command import TerminalCommand
from agex.shell.guest import guest_terminal
from agex.shell.python import python_command
from agex.shell.terminal import Terminal, Transcript

__all__ = ["Terminal", "TerminalCommand", "Transcript", "guest_terminal", "python_command"]
