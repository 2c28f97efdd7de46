"""Every kind of workspace, each empty."""

from __future__ import annotations

from operator import call

import pytest

from agex.files import GuardedFiles, IsolatedFiles, MemorySpace, VirtualFiles
from agex.state import Live, Memory, Versioned

KINDS = ["memory", "live", "versioned", "isolated", "guarded"]


@pytest.fixture(params=KINDS)
def files(request, tmp_path):
    match request.param:
        case "memory":
            yield VirtualFiles(MemorySpace())
        case "live":
            yield VirtualFiles(Live().files)
        case "versioned":
            yield VirtualFiles(Versioned(Memory()).files)
        case "isolated":
            yield IsolatedFiles(tmp_path)
        case "guarded":
            yield GuardedFiles(VirtualFiles(MemorySpace()), call)
