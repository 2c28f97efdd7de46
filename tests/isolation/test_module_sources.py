"""The files of this package that a container gets from a source checkout."""

from __future__ import annotations

from pathlib import Path

import agex
from agex.isolation.rpc.module_sources import package_files

PACKAGE = Path(agex.__file__).parent


def test_a_container_gets_every_module_of_the_package() -> None:
    modules = {f"agex/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.rglob("*.py")}
    assert modules <= package_files().keys()


def test_a_container_gets_the_texts_that_modules_read() -> None:
    texts = {f"agex/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.glob("sandbox/**/*.txt")}
    assert texts
    assert texts <= package_files().keys()
