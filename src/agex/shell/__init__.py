"""A terminal over a workspace: pipelines, redirects and commands, and never a real process.

The shell itself is termish. This room adds the host's commands, and ``python`` in the same sandbox as the
agent's code.

Reading order: ``terminal`` (scripts, the host's commands), ``guest_terminal`` (the terminal of guest code).
"""

from agex.shell.guest_terminal import guest_terminal, python_command
from agex.shell.terminal import Terminal, TerminalCommand, Transcript, is_usual

__all__ = ["Terminal", "TerminalCommand", "Transcript", "guest_terminal", "is_usual", "python_command"]
