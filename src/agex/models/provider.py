"""Any provider, through pydantic-ai, which is imported at the first use (it takes 1.7 s)."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import importlib
import sys
import threading
import traceback
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from agex.errors import ModelNotConfigured
from agex.models import background
from agex.models.base import Model, ModelError, OnText, Profile, Reply, Request, Usage
from agex.models.conversation import to_messages, to_parameters
from agex.models.instrumentation import instrumentation
from agex.models.parser import Parsed, parse_calls, parse_text
from agex.models.surrogates import encodable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.models import Model as ProviderModel
    from pydantic_ai.settings import ModelSettings

__all__ = ["PydanticAIModel"]


class PydanticAIModel(Model):
    """A model of any provider that pydantic-ai knows.

    Args:
        model: ``"provider:model"``, or a pydantic-ai ``Model``. An instance is asked on a private
            event loop from then on: do not use its client on another one.
        seconds: limit of one request, from sending it to the last piece of its answer.
        api_key: the provider's key for a ``"provider:model"``; by default the environment has it.

    ``profile`` and the first request raise :class:`~agex.errors.ModelNotConfigured` where the
    name is unknown, the provider's package is not installed or its key is missing.
    """

    runs_on_any_loop = True

    def __init__(
        self, model: str | ProviderModel, *, seconds: float = 600.0, api_key: str | None = None
    ) -> None:
        self._spec = model
        self._key = api_key
        self._seconds = seconds
        self._lock = threading.Lock()
        self._made: tuple[int, ProviderModel] | None = None
        if isinstance(model, str):
            self.provider, _, self.name = model.partition(":")
        else:
            # A fallback model names all that it asks, with "fallback:" before both.
            self.provider = model.system.partition(":")[0]
            self.name = model.model_name.removeprefix(f"{self.provider}:")

    @property
    def profile(self) -> Profile:  # type: ignore[override]
        """How the model wants to be talked to, from pydantic-ai's own profile of it."""
        model = self._model()
        _load()
        return Profile(
            tools=_supports(model, "supports_tools"), images=_supports(model, "supports_image_input")
        )

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Answer a request. Works from any thread, inside a running event loop too.

        ``on_text`` is called in the calling thread.
        """
        model = self._model()
        pieces: SimpleQueue[str | None] = SimpleQueue()
        future = background.submit(self._request(model, request, pieces.put if on_text else None))
        future.add_done_callback(lambda _: pieces.put(None))
        try:
            while (piece := pieces.get()) is not None:
                if on_text is not None:
                    on_text(piece)
            return future.result()
        finally:
            future.cancel()

    async def aask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Like :meth:`ask`; cancelling it cancels the request. ``on_text`` is called in this loop."""
        model = await asyncio.to_thread(self._model)
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()

        def put(piece: str | None) -> None:
            with suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        future = background.submit(self._request(model, request, put if on_text else None))
        future.add_done_callback(lambda _: put(None))
        try:
            while (piece := await pieces.get()) is not None:
                if on_text is not None:
                    on_text(piece)
            return future.result()
        finally:
            future.cancel()

    def _model(self) -> ProviderModel:
        spec = self._spec
        with self._lock:
            if self._made is None or (isinstance(spec, str) and self._made[0] != background.generation()):
                made = _infer(spec, self._key) if isinstance(spec, str) else spec
                self._made = (background.generation(), _unsplit(made))
            return self._made[1]

    async def _request(self, model: ProviderModel, request: Request, on_text: OnText | None) -> Reply:
        try:
            response = await _respond(model, request, self._settings(model, request.sample), on_text)
        except Exception as error:
            failure = _as_model_error(error, model)
            if failure is None:
                raise
            raise failure from error
        return _reply(response, request)

    def _settings(self, model: ProviderModel, sample: int) -> ModelSettings:
        own = model.settings or {}
        settings: ModelSettings = {}
        if own.keys().isdisjoint({"timeout", "request_timeout"}):
            settings["request_timeout"] = self._seconds
        if "max_retries" not in own and "max_retries" not in model.unsupported_settings:
            settings["max_retries"] = 0  # repeating is the agent's business: it counts, and says so
        if sample > 1:
            _vary(settings, own, sample - 1)
        return settings


def _vary(settings: ModelSettings, own: ModelSettings, further: int) -> None:
    """Let a further sample of a task draw otherwise than the first, which has the model's own settings.

    A model that has no such setting ignores it, says pydantic-ai; Anthropic refuses a temperature while
    it thinks. Without one of its own, a model draws at about 1.
    """
    settings["seed"] = (own.get("seed") or 0) + further
    if own.get("thinking") or "anthropic_thinking" in own:
        return
    fixed = own.get("temperature")
    if fixed is None:
        settings["temperature"] = max(1.0 - 0.1 * further, 0.5)
    else:
        settings["temperature"] = min(fixed + 0.2 * further, max(fixed, 1.0))


_EXTRAS = frozenset({"anthropic", "google", "groq", "mistral", "openai", "openrouter"})
"""Providers that are an extra of this distribution, too."""
_SPLITTING = ("pydantic_ai.models.openai", "pydantic_ai.models.groq", "pydantic_ai.models.huggingface")
_NO_TAGS = ("<think>\n\u200b", "\u200b\n</think>")
"""Found in no answer; where reasoning is sent back as text, tags like any other."""


def _unsplit(model: ProviderModel) -> ProviderModel:
    """Return a model that leaves the text of an answer whole.

    Reasoning that a provider sends apart stays apart. In the text, pydantic-ai looks for one pair of tags:
    it cuts code in two that has them in a string, and takes off an opening one that is never closed.
    """
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel

    if isinstance(model, WrapperModel):
        outer = copy.copy(model)
        outer.wrapped = _unsplit(outer.wrapped)
        return outer
    if isinstance(model, FallbackModel):
        several = copy.copy(model)
        several.models = [_unsplit(each) for each in model.models]
        return several
    modules = [base.__module__ for base in type(model).__mro__]
    if not any(module.startswith(_SPLITTING) for module in modules):
        return model
    whole = copy.copy(model)
    vars(whole)["profile"] = {**model.profile, "thinking_tags": _NO_TAGS}
    return whole


def _supports(model: ProviderModel, what: str) -> bool:
    return all(cast("Mapping[str, Any]", each.profile).get(what, True) for each in _asked(model))


def _asked(model: ProviderModel) -> list[ProviderModel]:
    """Return the models that a model asks: itself, or those of a fallback model, which has no profile."""
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel

    if isinstance(model, FallbackModel):
        return [each for one in model.models for each in _asked(one)]
    inner = _asked(model.wrapped) if isinstance(model, WrapperModel) else [model]
    return inner if len(inner) > 1 else [model]


def _load() -> None:
    """Import what a request needs, so that its time is the provider's alone."""
    importlib.import_module("pydantic_ai.direct")
    instrumentation()


def _infer(name: str, api_key: str | None) -> ProviderModel:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider, infer_provider_class

    def with_key(provider: str) -> Any:
        try:
            make: Any = infer_provider_class(provider)  # each has parameters of its own, mostly a key
            return make(api_key=api_key)
        except (TypeError, ValueError) as error:
            raise UserError(f"an API key was given, but {error}") from error

    try:
        return infer_model(name, infer_provider if api_key is None else with_key)
    except ImportError as error:
        provider = name.partition(":")[0]
        raise ModelNotConfigured(
            f"{name!r} needs a package that is not installed: {error}\n"
            f'Usually: pip install "{"agex-py" if provider in _EXTRAS else "pydantic-ai-slim"}[{provider}]"'
        ) from error
    except UserError as error:
        raise ModelNotConfigured(
            f"{name!r} cannot be used: {error}\n"
            'Valid forms: "provider:model" with the provider\'s key set, "local", "local:/path/x.gguf".'
        ) from error


async def _respond(
    model: ProviderModel, request: Request, settings: ModelSettings, on_text: OnText | None
) -> ModelResponse:
    from pydantic_ai.direct import model_request, model_request_stream

    messages = to_messages(request.messages)
    parameters = to_parameters(request.actions if _supports(model, "supports_tools") else ())
    if on_text is None:
        return await model_request(
            model,
            messages,
            model_settings=settings,
            model_request_parameters=parameters,
            instrument=instrumentation(),
        )
    stream = model_request_stream(
        model,
        messages,
        model_settings=settings,
        model_request_parameters=parameters,
        instrument=instrumentation(),
    )
    deltas = _Deltas(on_text)
    async with stream as events:
        async for event in events:
            deltas.take(event)
    response = events.get()
    if _broke_off(response):
        raise ModelError(f"{model.system}: the stream broke off before its end", retryable=True)
    return response


def _broke_off(response: ModelResponse) -> bool:
    # Where a stream ends without a reason, pydantic-ai may put "stop", for servers that never give one.
    # One that left out the usage as well just hung up; doubles, which have no URL, give neither.
    if response.provider_url is None or (response.provider_details or {}).get("finish_reason"):
        return False
    ended = response.finish_reason == "stop" and not response.usage.unmeasured_requests
    return not ended and response.finish_reason in (None, "stop")


class _Deltas:
    """Makes readable text of a stream of events: words as they are, code out of its JSON."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._arguments: dict[int, str] = {}
        self._shown: dict[int, str] = {}

    def take(self, event: ModelResponseStreamEvent) -> None:
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent

        if isinstance(event, PartStartEvent):
            self._take(event.index, event.part)
        elif isinstance(event, PartDeltaEvent):
            self._take(event.index, event.delta)

    def _take(self, index: int, piece: object) -> None:
        from pydantic_ai.messages import TextPart, TextPartDelta, ToolCallPart, ToolCallPartDelta

        if isinstance(piece, TextPart | TextPartDelta):
            text = piece.content if isinstance(piece, TextPart) else piece.content_delta
            if text:
                self._on_text(text)
        elif isinstance(piece, ToolCallPart | ToolCallPartDelta):
            self._take_arguments(index, piece.args if isinstance(piece, ToolCallPart) else piece.args_delta)

    def _take_arguments(self, index: int, arguments: str | dict[str, Any] | None) -> None:
        if isinstance(arguments, str):
            self._arguments[index] = self._arguments.get(index, "") + arguments
            arguments = _partial(self._arguments[index])
        if not arguments:
            return
        now = "\n".join(value for value in arguments.values() if isinstance(value, str))
        before = self._shown.get(index, "")
        if now.startswith(before) and now != before:
            self._shown[index] = now
            self._on_text(now[len(before) :])


def _partial(arguments: str) -> dict[str, Any]:
    from pydantic_core import from_json

    try:
        data = from_json(arguments, allow_partial="trailing-strings")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _reply(response: ModelResponse, request: Request) -> Reply:
    if response.finish_reason == "content_filter":
        raise ModelError("the provider's content filter withheld the answer", retryable=False)
    response.parts = [_encodable_part(part) for part in response.parts]
    truncated = response.finish_reason == "length" or response.state != "complete"
    text = response.text or ""
    parsed = Parsed() if truncated else _parse(response, text, request)
    return Reply(
        text=text,
        actions=parsed.actions,
        notes=parsed.notes,
        truncated=truncated,
        usage=_usage(response),
        raw=response,
    )


def _encodable_part(part: Any) -> Any:
    """Return a part as it can be sent back: half a character would end the next request."""
    fields = {name: getattr(part, name, None) for name in ("content", "args", "tool_name")}
    changed = {name: fit for name, value in fields.items() if (fit := _encodable(value)) != value}
    return dataclasses.replace(part, **changed) if changed else part


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def _parse(response: ModelResponse, text: str, request: Request) -> Parsed:
    calls = [(str(call.tool_name), call.args or "") for call in response.tool_calls]
    if calls:
        return parse_calls(calls, offered=request.actions, most=request.max_actions)
    return parse_text(text, offered=request.actions, most=request.max_actions)


def _usage(response: ModelResponse) -> Usage:
    usage = response.usage
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost=_cost(response),
    )


def _cost(response: ModelResponse) -> float | None:
    if not response.model_name or not response.usage.has_values():
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):  # no price known for this model or provider
        return None


def _as_model_error(error: Exception, model: ProviderModel) -> ModelError | None:
    from pydantic_ai import exceptions

    name = f"{model.system}:{model.model_name}"
    if isinstance(error, exceptions.ModelAPIError):
        retryable = _may_pass(error)
        advice = "" if retryable else f" {_advice(error)}"
        return ModelError(f"{name}: {error}{advice}", retryable=retryable, retry_after=error.retry_after)
    if isinstance(error, exceptions.ContentFilterError):
        return ModelError(f"{name}: the content filter withheld the answer: {error}", retryable=False)
    if isinstance(error, exceptions.UnexpectedModelBehavior):
        return ModelError(f"{name}: the answer could not be read: {error}", retryable=True)
    if isinstance(error, exceptions.UserError):
        return ModelError(f"{name}: {error}", retryable=False)
    if isinstance(error, OSError):  # connection refused or reset, timeouts
        return ModelError(f"{name}: {type(error).__name__}: {error}", retryable=True)
    if _is_misreading(error):
        kind = type(error).__name__
        return ModelError(f"{name}: the answer could not be read: {kind}: {error}", retryable=True)
    return None


_PROVIDERS = frozenset({
    "agex", "anthropic", "anyio", "botocore", "cohere", "genai_prices", "google", "groq", "httpcore", "httpx",
    "huggingface_hub", "mistralai", "openai", "pydantic", "pydantic_ai", "pydantic_core", "xai_sdk",
})  # fmt: skip
"""The packages between a request and the network, beside the standard library."""


def _is_misreading(error: Exception) -> bool:
    """Return whether a provider's package failed on a malformed answer: one without choices, or a list.

    An error of the same class that passed through the caller's code belongs to the caller.
    """
    if not isinstance(error, AttributeError | LookupError | TypeError | ValueError | Warning):
        return False
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    packages = {module.partition(".")[0] for module in modules}
    return packages <= _PROVIDERS | sys.stdlib_module_names


def _may_pass(error: Exception) -> bool:
    from pydantic_ai import exceptions

    if isinstance(error, exceptions.ModelRequestRejectedError | exceptions.ModelQuotaExceededError):
        return False
    if isinstance(error, exceptions.ModelHTTPError):
        return error.status_code in (408, 409, 425, 429) or error.status_code >= 500
    return True


def _advice(error: Exception) -> str:
    from pydantic_ai import exceptions

    if isinstance(error, exceptions.ModelAuthenticationError):
        return "Check the provider's API key in the environment, and that it may use this model."
    if isinstance(error, exceptions.ModelNotFoundError):
        return "Check the model's name, and the base URL if you set one."
    if isinstance(error, exceptions.ModelQuotaExceededError):
        return "The account's quota or credit is used up."
    if isinstance(error, exceptions.ModelContextWindowExceededError):
        return "The conversation is longer than the model reads: shorten primer or inputs."
    return "The provider refuses the request itself; sending it again will not help."
