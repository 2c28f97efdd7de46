"""The sub-room loop."""

__all__: list[str] = []
