"""Our messages and actions in pydantic-ai's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agex.models.actions import TOOLS, parameters_of
from agex.models.base import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse, UserContent
    from pydantic_ai.models import ModelRequestParameters

__all__ = ["to_messages", "to_parameters"]


def to_parameters(actions: Iterable[str]) -> ModelRequestParameters:
    """Offer *actions* as tools; text is always allowed besides."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(name=name, description=TOOLS[name][0], parameters_json_schema=parameters_of(name))
        for name in actions
    ]
    return ModelRequestParameters(function_tools=tools, allow_text_output=True)


def to_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """Translate a conversation.

    An assistant message goes back as the provider's own response; the user message after it
    answers each of its tool calls with its own result.
    """
    from pydantic_ai.messages import ModelRequest

    translated: list[ModelMessage] = []
    for message in messages:
        last = translated[-1] if translated else None
        if message.role == "assistant":
            translated.append(_response(message))
        elif isinstance(last, ModelRequest):
            last.parts = [*last.parts, *_parts(message, None)]
        else:
            translated.append(ModelRequest(parts=_parts(message, last)))
    return translated


def _response(message: Message) -> ModelResponse:
    from pydantic_ai.messages import ModelResponse, TextPart

    raw = message.reply.raw if message.reply is not None and not message.reply.truncated else None
    if isinstance(raw, ModelResponse) and raw.parts:
        return raw
    # A cut tool call is not valid JSON, and no provider takes an empty message.
    return ModelResponse(parts=[TextPart(content=message.content.strip() or "(no answer)")])


def _parts(message: Message, answered: ModelResponse | None) -> list[ModelRequestPart]:
    from pydantic_ai.messages import SystemPromptPart, UserPromptPart

    if message.role == "system":
        return [SystemPromptPart(content=message.content)]
    if answered is None or not answered.tool_calls:
        return [UserPromptPart(content=_content(message.text, message))]
    returns = _returns(message, answered)
    return [*returns, UserPromptPart(content=_content("", message))] if message.images else returns


def _returns(message: Message, answered: ModelResponse) -> list[ModelRequestPart]:
    from pydantic_ai.messages import ToolReturnPart

    contents = message.answers(len(answered.tool_calls))
    return [
        ToolReturnPart(tool_name=call.tool_name, content=content, tool_call_id=call.tool_call_id)
        for call, content in zip(answered.tool_calls, contents, strict=True)
    ]


def _content(text: str, message: Message) -> str | list[UserContent]:
    from pydantic_ai.messages import BinaryContent

    if not message.images:
        return text
    images = [BinaryContent(data=image.data, media_type=image.media_type) for image in message.images]
    return [text, *images] if text else list(images)
