"""A small model on this machine's own CPU, through llama.cpp (the ``xllamacpp`` wheel).

One engine a weights file and process, shared by all models and threads; it answers one
request after the other. The first turn of a task is greedy, later ones and further samples draw with a
seed taken from the request, so that the same request always gets the same answer.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import hashlib
import importlib
import importlib.util
import os
import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agex.errors import ModelNotConfigured, WeightsCorrupt
from agex.models.base import Model, ModelError, OnText, Profile, Reply, Request, Usage
from agex.models.fences import find_fences
from agex.models.parser import parse_text
from agex.models.reasoning import spoken
from agex.models.source import parse
from agex.models.weights import find_weights

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LocalModel", "LocalSettings", "is_installed"]


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """How the local model runs."""

    context: int = 8192
    """Tokens of prompt and answer together."""
    max_tokens: int = 1024
    """Tokens of one answer; a longer one is cut and reported as truncated."""
    threads: int | None = None
    """CPU threads; None for one less than the cores this process may use.

    The engine's threads wait for each other by spinning. On two cores that others use too, two
    threads wrote 1 token a second, one thread 11; the one core left also runs the agent's code."""


def is_installed() -> bool:
    """Return whether the runtime is there, without loading it."""
    return importlib.util.find_spec("xllamacpp") is not None


class LocalModel(Model):
    """A GGUF model on the CPU. Weights are found and loaded at the first request.

    Args:
        path: the GGUF file; None to find one, see :mod:`agex.models.weights`.
        environ: where ``AGEX_LOCAL_MODEL`` and the cache directory are looked up.
        settings: context, output limit and threads.

    An answer ends early where its first Python block is complete: what small models write
    behind it is talk, and costs seconds.
    """

    provider = "local"
    runs_on_any_loop = True
    profile = Profile(style="completion", tools=False)

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        settings: LocalSettings | None = None,
    ) -> None:
        self.name = Path(path).stem if path is not None else "local"
        self.settings = settings or LocalSettings()
        self._path = path
        self._environ = environ

    def weights(self) -> Path:
        """Return the GGUF file, which is put together or fetched where needed.

        Raises:
            ModelNotConfigured: there is none.
            WeightsCorrupt: it cannot be read.
        """
        return find_weights(self._path, self._environ)

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Answer a request.

        Raises:
            ModelNotConfigured: the runtime or the weights are missing.
            WeightsCorrupt: the weights cannot be loaded.
            ModelError: the conversation is longer than the context, or the engine failed.
        """
        return self._ask(request, _Answer(prefill=request.prefill, on_text=on_text))

    async def aask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Like :meth:`ask`, in a thread; when cancelled, the engine stops at the next token."""
        answer = _Answer(prefill=request.prefill, on_text=on_text)
        try:
            return await asyncio.to_thread(self._ask, request, answer)
        except asyncio.CancelledError:
            answer.stop.set()
            raise

    def _ask(self, request: Request, answer: _Answer) -> Reply:
        engine = self._engine()
        engine.handle_chat_completions(_body(request, self.settings), answer.receive)
        if answer.failure is not None:
            raise answer.failure
        if answer.stop.is_set():
            raise ModelError("the request was cancelled", retryable=False)
        if answer.error is not None:
            raise _engine_error(answer.error, self.settings)
        if not answer.ended:
            raise ModelError("llama.cpp stopped without an answer", retryable=True)
        return _reply(answer, request)

    def _engine(self) -> Any:
        path = self.weights()  # a broken file is named, runtime or not
        if not is_installed():
            raise ModelNotConfigured('the local model needs its runtime: pip install "agex-py[local]"')
        self.name = path.stem
        return _shared_engine(path, self.settings)


@dataclass(kw_only=True)
class _Answer:
    """The engine's answer, piece by piece."""

    prefill: str
    on_text: OnText | None
    text: str = ""
    truncated: bool = False
    ended: bool = False
    error: dict[str, Any] | None = None
    failure: BaseException | None = None
    timings: dict[str, Any] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.text = self.prefill

    def receive(self, chunk: dict[str, Any]) -> bool:
        """Take one chunk; True ends the generation."""
        # The engine swallows a callback's exception: keep it, and raise it when the engine has returned.
        try:
            return self._receive(chunk)
        except BaseException as failure:  # noqa: BLE001
            self.failure = failure
            return True

    def _receive(self, chunk: dict[str, Any]) -> bool:
        if "error" in chunk:
            self.error = chunk["error"]
            return True
        self.timings = chunk.get("timings") or self.timings
        for choice in chunk["choices"]:
            self._add(choice["delta"].get("content") or "")
            if choice["finish_reason"] is not None:
                self.ended, self.truncated = True, choice["finish_reason"] == "length"
        return self.stop.is_set()

    def _add(self, piece: str) -> None:
        if not piece or self.ended:
            return
        self.text += piece
        if self.on_text is not None:
            self.on_text(piece)
        self.ended = "`" in piece and _holds_a_whole_block(self.text)


def _holds_a_whole_block(text: str) -> bool:
    *before, last = spoken(text).split("\n")  # a draft in the reasoning is not the answer
    fences = list(find_fences("\n".join(before))) if last == "```" else []
    return bool(fences) and bool(fences[-1].body.strip()) and parse(fences[-1].body) is not None


def _body(request: Request, settings: LocalSettings) -> dict[str, Any]:
    messages = [{"role": message.role, "content": message.text} for message in request.messages]
    if request.prefill:
        messages.append({"role": "assistant", "content": request.prefill})
    return {
        "messages": messages,
        "max_tokens": settings.max_tokens,
        "stream": True,
        "timings_per_token": True,
        # A cached prefix is computed in other batches, and the last bits of its sums differ.
        "cache_prompt": False,
        **_sampling(request),
    }


def _sampling(request: Request) -> dict[str, Any]:
    further = max(request.sample - 1, 0)
    if request.attempt == further == 0:
        return {"temperature": 0.0}
    which = f"{request.attempt}\n" if further == 0 else f"{request.attempt}/{further}\n"
    digest = hashlib.sha256(f"{which}{request}".encode("utf-8", "surrogatepass")).digest()
    temperature = min(0.2 + 0.2 * (request.attempt + further), 0.8)
    return {"temperature": temperature, "top_p": 0.95, "seed": int.from_bytes(digest[:4], "big") >> 1}


def _engine_error(error: dict[str, Any], settings: LocalSettings) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        return ModelError(
            f"the conversation has {error.get('n_prompt_tokens')} tokens, the local model reads "
            f"{settings.context}. Shorten the primer or the inputs, or name a larger model.",
            retryable=False,
        )
    return ModelError(f"llama.cpp refused the request: {error.get('message', error)}", retryable=False)


def _reply(answer: _Answer, request: Request) -> Reply:
    parsed = parse_text(
        answer.text, offered=request.actions, most=request.max_actions, truncated=answer.truncated
    )
    timings = answer.timings
    return Reply(
        text=answer.text,
        actions=parsed.actions,
        notes=parsed.notes,
        truncated=answer.truncated,
        usage=Usage(
            requests=1,
            input_tokens=int(timings.get("prompt_n", 0)) + int(timings.get("cache_n", 0)),
            output_tokens=int(timings.get("predicted_n", 0)),
        ),
    )


# The engines of this process.

_lock = threading.Lock()
_engines: dict[tuple[Path, int, int], Any] = {}


def _shared_engine(path: Path, settings: LocalSettings) -> Any:
    threads = settings.threads or max(1, _cores() - 1)
    key = (path.resolve(), settings.context, threads)
    with _lock:
        if not _engines:
            _register_cleanup()
        if key not in _engines:
            _engines[key] = _load(path, settings.context, threads)
        return _engines[key]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load(path: Path, context: int, threads: int) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")  # it has no types
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = threads
    params.fit_params = False
    params.warmup = False
    params.verbosity = -1
    # The engine also listens on a loopback port; nobody else is to use it.
    params.ui = False
    params.api_keys = [secrets.token_urlsafe(32)]
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise WeightsCorrupt(f"llama.cpp cannot load {path}: it is cut, damaged or too new.") from error


_registered = False


def _register_cleanup() -> None:
    global _registered  # noqa: PLW0603
    if not _registered:
        atexit.register(_engines.clear)
        os.register_at_fork(after_in_child=_abandon)
        _registered = True


def _abandon() -> None:
    # A forked child has the engine's memory but none of its threads; destroying it would wait for
    # them for ever. The child keeps the memory and loads its own engine when asked. It must end like
    # children of multiprocessing do, by os._exit: llama.cpp's log waits for its thread at exit.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    for engine in _engines.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    _engines.clear()
