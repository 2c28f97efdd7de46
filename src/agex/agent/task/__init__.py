"""The sub-room task."""

__all__: list[str] = []
