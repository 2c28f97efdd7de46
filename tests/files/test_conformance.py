"""The conformance kits of the libraries whose protocol a workspace speaks."""

from __future__ import annotations

import monkeyfs
import termish.fs

from agex.files import GuardedFiles


def test_monkeyfs_own_kit_passes(files):
    monkeyfs.check_filesystem(files)


def test_termish_own_kit_passes(files):
    if not isinstance(files, GuardedFiles):
        termish.fs.check_filesystem(files)
