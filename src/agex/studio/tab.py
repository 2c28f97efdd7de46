"""The page in a browser tab: what its worker calls.

A question of the page is answered by the same `Api` as over HTTP; what an agent is to do goes to
the `Tab`. All of it is JSON, so that it passes between the page and its worker as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from agex.agent import event_from_json
from agex.browser import Tab
from agex.studio.api import Api, Refused
from agex.studio.steps import steps

__all__ = ["TabPage", "open_page"]


async def open_page(
    name: str, on_steps: Callable[[str], object], on_token: Callable[[str], object]
) -> TabPage:
    """Open the conversation of that name in this browser, or begin it.

    Args:
        name: of the IndexedDB database.
        on_steps: called with what each event shows, as a JSON list.
        on_token: called with each piece of the model's text.

    Raises:
        StateConflict: it is open in another tab.
        StateError: this page can keep nothing.
    """
    return TabPage(await Tab.open(name), name, on_steps, on_token)


class TabPage:
    """One conversation, as a page calls it.

    Args:
        tab: the conversation.
        name: what the page calls it.
        on_steps: see `open_page`.
        on_token: see `open_page`.
    """

    def __init__(
        self, tab: Tab, name: str, on_steps: Callable[[str], object], on_token: Callable[[str], object]
    ) -> None:
        self._tab = tab
        self._name = name
        tab.on_event = lambda text: on_steps(json.dumps(steps(event_from_json(text))))
        tab.on_token = on_token

    async def call(self, method: str, arguments: str) -> str:
        """Answer a question of the page, or have the tab do something; see ``docs/browser.md``.

        Args:
            method: ``"look"`` for a question, with ``what`` and ``query``; else a method of the tab.
            arguments: a JSON object.

        Returns:
            JSON; ``{"error": {"kind", "message"}}`` where it could not be done.
        """
        if method != "look":
            return await self._tab.call(method, arguments)
        given = json.loads(arguments)
        try:
            found = Api(self._tab.state, self._name).ask(given["what"], given["query"])
        except Refused as error:
            found = {"error": {"kind": type(error).__name__, "message": str(error)}}
        return json.dumps(found)
