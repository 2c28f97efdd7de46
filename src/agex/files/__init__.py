"""The workspace: files that belong to the agent, never to the host.

Virtual files live in a state and have its history; isolated files are a real directory that no path leads
out of. This room knows nothing of agents, of the sandbox and of the state.

Reading order: ``file_tree`` (the protocol), ``virtual_files`` and ``real_directory`` (the two kinds),
``mount``, ``changes`` and ``quota`` (around either), ``guest_files`` and ``open_file`` (files as guest code
has them), ``stdlib_modules`` with ``os_module`` and ``tempfile_module`` (the standard library over them),
``workspace`` (the host's view), ``skill``, ``recap`` and ``text_edit``.
"""

from agex.files.changes import WatchedFiles
from agex.files.file_tree import FileTree, Space
from agex.files.guest_files import GuardedFiles
from agex.files.mount import MountedFiles
from agex.files.real_directory import IsolatedFiles
from agex.files.virtual_files import MemorySpace, VirtualFiles
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
