"""The sub-room rules."""

__all__: list[str] = []
