"""The sub-room wire."""

__all__: list[str] = []
