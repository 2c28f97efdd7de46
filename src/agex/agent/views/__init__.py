"""Views of agents, runs and states for a person at a terminal or in a notebook.

This room only reads. In order: `inspection`, `printing`, `state_history`.
"""

__all__: list[str] = []
