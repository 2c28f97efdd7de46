"""The workspace: files that belong to the agent, and never the host's.

Knows nothing of agents, of the sandbox and of the state. Nothing here opens a file of the
host.
"""

from agex.files.workspace import Workspace, connect_fs

__all__ = ["Workspace", "connect_fs"]
