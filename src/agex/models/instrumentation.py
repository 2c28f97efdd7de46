"""The OpenTelemetry provider of this process, and the settings by which pydantic-ai reports to it.

Nothing is imported to find out: where nobody has loaded the API, nobody has set it up.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider
    from pydantic_ai.models.instrumented import InstrumentationSettings

__all__ = ["instrumentation", "tracer_provider"]


def tracer_provider() -> TracerProvider | None:
    """Return the process's tracer provider; None where none was set."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider: TracerProvider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider


def instrumentation() -> InstrumentationSettings | bool:
    """Return how pydantic-ai traces a request: by its own settings, else without any contents."""
    from pydantic_ai import Agent

    told: Any = Agent._instrument_default  # pyright: ignore[reportPrivateUsage] - there is no other way to ask
    provider = tracer_provider()
    return told or (_without_contents(provider) if provider is not None else False)


@lru_cache(maxsize=1)
def _without_contents(provider: TracerProvider) -> InstrumentationSettings:
    from pydantic_ai.models.instrumented import InstrumentationSettings

    return InstrumentationSettings(
        tracer_provider=provider, include_content=False, include_binary_content=False
    )
