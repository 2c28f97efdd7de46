"""The sub-room code."""

__all__: list[str] = []
