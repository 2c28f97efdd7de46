"""`make demo` installs what the model that agex would ask needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from agex.models.resolve import PROVIDERS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def extras_of_demo(tmp_path: Path, **settings: str) -> set[str]:
    """Ask make what it would install, into an environment that does not exist yet."""
    make = shutil.which("make")
    assert make is not None, "the project is built with make: install it"
    path = os.environ["PATH"]
    command = [make, "--dry-run", "demo", f"VENV={tmp_path}/venv"]
    plan = subprocess.run(
        command, cwd=ROOT, env={"PATH": path, **settings}, check=True, capture_output=True, text=True
    )
    return set(plan.stdout.partition("installing agex-py[")[2].partition("]")[0].split(","))


@pytest.mark.parametrize(("key", "model"), PROVIDERS.items())
def test_the_demo_installs_the_provider_whose_key_is_set(tmp_path: Path, key: str, model: str) -> None:
    provider = model.partition(":")[0]
    assert extras_of_demo(tmp_path, **{key: "secret"}) == {"demo", provider}
    assert provider in PROJECT["optional-dependencies"]


def test_the_demo_installs_the_first_of_several_providers(tmp_path: Path) -> None:
    first = next(iter(PROVIDERS.values())).partition(":")[0]
    assert extras_of_demo(tmp_path, **dict.fromkeys(PROVIDERS, "secret")) == {"demo", first}


@pytest.mark.parametrize(
    ("named", "extras"),
    [
        ("local", {"demo", "local", "local-weights"}),
        ("local:/models/own.gguf", {"demo", "local", "local-weights"}),
        ("anthropic:claude-sonnet-4-5", {"demo", "anthropic"}),
        ("openai-responses:gpt-5", {"demo", "openai"}),
    ],
)
def test_the_model_named_in_the_environment_wins_over_a_key(
    tmp_path: Path, named: str, extras: set[str]
) -> None:
    assert extras_of_demo(tmp_path, AGEX_MODEL=named, GROQ_API_KEY="secret") == extras


def test_the_demo_installs_the_local_model_when_no_key_is_set(tmp_path: Path) -> None:
    assert extras_of_demo(tmp_path) == {"demo", "local", "local-weights"}
