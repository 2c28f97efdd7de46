"""The sub-room patches."""

__all__: list[str] = []
