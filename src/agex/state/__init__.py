"""Where an agent's variables live between tasks.

A state holds variables, a ``cache`` and the events of the tasks that used it. This room
knows nothing of agents and never runs guest code.
"""

from __future__ import annotations

from agex.state.base import State
from agex.state.live import Live

__all__ = ["Live", "State"]
