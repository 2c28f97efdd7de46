"""Reasoning in a reply's text, which is never executed, and the frame that chat templates put around it.

Servers split reasoning off where they know the model's template; where they do not, it comes as text. The
markers are those of the open model families. A marker in a code block that is valid Python, in quotes or in
backticks is what the answer talks about; any other one is believed, also where it stands alone:

=============================  =================================================================
What is found                  What is dropped
=============================  =================================================================
an opening and a closing       both, with all between
a closing without an opening   everything before it: the template had opened it in the prompt
an opening without a closing   everything after it
a template's end marker        everything after it: the model played the next turn as well
=============================  =================================================================
"""

from __future__ import annotations

import re

from agex.models.fences import Fence, Fences
from agex.models.source import parse, tidy

__all__ = ["spoken"]

_NAMES = (
    "think|thinking|thoughts?|reasoning|reasoning_content|reflection|analysis|scratchpad|rationale|"
    "thought_process|chain_of_thought|inner_monologue|internal_monologue|deliberation"
)
_OPENING = (
    rf"(?:<|&lt;)(?:[a-z]{{1,12}}[:_])?(?:{_NAMES})(?:\s[^<>\n]{{0,200}})?(?:>|&gt;)"  # also <seed:think>
    r"|\[THINK\]"  # Magistral
    r"|◁think▷"  # Kimi
    r"|<\|START_THINKING\|>"  # Command
    r"|<\|begin_of_thought\|>"  # Sky-T1, OpenThinker
    r"|<\|inner_prefix\|>"  # Apertus
    r"|<\|think(?:ing)?\|>"  # Solar
    r"|<unused94>|<\|channel>\s?(?:thought|analysis)"  # Gemma
    r'|<details\s+type="reasoning"[^<>\n]{0,200}>'  # Open WebUI
)
_CLOSING = (
    rf"(?:<|&lt;)/(?:[a-z]{{1,12}}[:_])?(?:{_NAMES})\s?(?:>|&gt;)"
    r"|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>|<\|inner_suffix\|>"
    r"|<\|/think(?:ing)?\|>|<unused95>|<channel\|>"
)
_ANALYSIS = r"<\|channel\|>\s?analysis\b[^<\n]{0,100}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>"  # gpt-oss
_FRAME = (
    r"<\|start\|>assistant|<\|channel\|>\s?\w{1,20}\s?<\|message\|>|<\|end\|>(?=\s*<\|start\|>assistant)"
    r"|<\|im_start\|>assistant|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model"
    r"|<\|turn>model|<｜Assistant｜>|<\|assistant\|>|<\|(?:START|END)_RESPONSE\|>"
    r"|<\|(?:begin|end)_of_solution\|>|<bos>|<s>(?=\s*```)"
)
_END = (
    r"<\|(?:im_end|im_start|eot_id|eom_id|endoftext|end_of_text|end|return|eot|END_OF_TURN_TOKEN|end_of_turn"
    r"|assistant_end|endofturn|start_header_id|user|observation|system)\|>"
    r"|<end_of_turn>|<start_of_turn>|<turn\|>|<\|turn>|<｜end▁of▁sentence｜>|<｜User｜>"
    r"|(?:</s>|<eos>|\[/?INST\])[ \t]*$"
)
_MARKER = re.compile(
    rf"(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})|(?P<analysis>{_ANALYSIS})|(?P<frame>{_FRAME})|(?P<end>{_END})",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_CLOSING = re.compile(rf"{_CLOSING}|</details>", re.IGNORECASE)
_SOLAR_CLOSING = re.compile(rf"{_CLOSING}|<\|end\|>", re.IGNORECASE)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)")

_GRANITE = re.compile(
    r"^[ \t]*here(?:['’]s| is) my (?:(?P<thought>thought process)|response)\b:?", re.IGNORECASE | re.MULTILINE
)
_BARE_CHANNELS = re.compile(r"\A\s*analysis(?=\W|[A-Z])")
_LAST_CHANNEL = "assistantfinal"
"""The rest of gpt-oss's channel markers where the special tokens are missing."""

_NEAR = 200
"""How far before a marker quotes are looked for: a line may be as long as the reply."""


def spoken(text: str) -> str:
    """Return *text* without reasoning, markers of chat templates, and what stands behind their end.

    Args:
        text: all that the model wrote, with Unix line ends.
    """
    text = _without_phrases(text)
    if _MARKER.search(text) is None or _is_code(text):
        return text
    return _Speech(text).read()


def _is_code(text: str) -> bool:
    return "```" not in text and parse(tidy(text.strip("\n"))) is not None


def _without_phrases(text: str) -> str:
    """Drop reasoning that begins and ends with words: it counts only where both are there."""
    if _BARE_CHANNELS.match(text) and _LAST_CHANNEL in text:
        text = text[text.rindex(_LAST_CHANNEL) + len(_LAST_CHANNEL) :]
    kept, after, begun = [], 0, -1
    for match in _GRANITE.finditer(text):
        if match["thought"] and begun < 0:
            begun = match.start()
        elif not match["thought"] and begun >= 0:
            kept.append(text[after:begun])
            after, begun = match.end(), -1
    return "".join([*kept, text[after:]])


class _Speech:
    """Reads a text from its beginning to its end, block by block and marker by marker."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = Fences(text)
        self._kept: list[str] = []
        self._from = 0
        self._judged: tuple[int, bool] = (-1, False)

    def read(self) -> str:
        fence = self._fences.first(0)
        marker = _MARKER.search(self._text)
        while marker is not None:
            while fence is not None and fence.end <= marker.start():
                fence = self._fences.first(fence.end)
            inside = fence is not None and fence.start < marker.start()
            if fence is not None and inside and self._shields(fence):
                marker = _MARKER.search(self._text, fence.end)
            elif _is_quoted(self._text, marker, inside=inside):
                marker = _MARKER.search(self._text, marker.end())
            else:
                self._take(marker)
                fence = self._fences.first(self._from)
                marker = _MARKER.search(self._text, self._from)
        return "".join([*self._kept, self._text[self._from :]])

    def _shields(self, fence: Fence) -> bool:
        if self._judged[0] != fence.start:
            self._judged = (fence.start, _shields(fence))
        return self._judged[1]

    def _take(self, marker: re.Match[str]) -> None:
        """Drop what a marker says, and go on behind it."""
        kind, whole = marker.lastgroup, len(self._text)
        said = self._text[self._from : marker.start()]
        if kind == "closing":
            self._kept.clear()
            self._from = marker.end()
            return
        self._kept += [said, "" if kind == "end" else "\n"]
        if kind == "end":
            # A frame may come first; an end before anything was said ends nothing.
            self._from = whole if "".join(self._kept).strip() else marker.end()
        elif kind == "frame":
            self._from = marker.end()
        else:
            closing = self._closing(marker)
            self._from = whole if closing is None else closing.end()

    def _closing(self, opening: re.Match[str]) -> re.Match[str] | None:
        closings = _CHANNEL_END if opening.lastgroup == "analysis" else _ANY_CLOSING
        if opening[0].startswith("<|think"):
            closings = _SOLAR_CLOSING
        found = closings.search(self._text, opening.end())
        while found is not None and found[0] and _is_quoted(self._text, found, inside=False):
            found = closings.search(self._text, found.end())
        return found


def _shields(fence: Fence) -> bool:
    """Return whether the markers in a block are the block's own: it is valid Python, or a file's content."""
    if fence.kind in ("write_file", "edit_file"):
        return fence.is_closed
    return parse(tidy(fence.body)) is not None


def _is_quoted(text: str, marker: re.Match[str], *, inside: bool) -> bool:
    """Return whether a marker stands in quotes or backticks on its line: it is talked about."""
    start, end = marker.span()
    around = text[max(0, start - 1) : start]
    if around and around in "`'\"" and text[end : end + 1] == around:
        return True
    before = text[max(0, start - _NEAR, text.rfind("\n", max(0, start - _NEAR), start) + 1) : start]
    behind = text[end : end + _NEAR].partition("\n")[0]
    before, behind = before.replace("```", ""), behind.replace("```", "")
    marks = "`'\"" if inside else "`"  # in prose there are apostrophes
    return any(before.count(mark) % 2 == 1 and mark in behind for mark in marks)
