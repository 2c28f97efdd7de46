"""The workspace: files that belong to the agent, and never the host's.

Virtual ones live in a state and have its history; isolated ones are a directory that nothing
leads out of. Knows nothing of agents, of the sandbox and of the state.
"""

from agex.files.base import FileTree, Space
from agex.files.guarded import GuardedFiles
from agex.files.isolated import IsolatedFiles
from agex.files.memory import MemorySpace
from agex.files.mounted import MountedFiles
from agex.files.virtual import VirtualFiles
from agex.files.watched import WatchedFiles
from agex.files.workspace import Workspace, connect_fs

__all__ = [
    "FileTree",
    "GuardedFiles",
    "IsolatedFiles",
    "MemorySpace",
    "MountedFiles",
    "Space",
    "VirtualFiles",
    "WatchedFiles",
    "Workspace",
    "connect_fs",
]
