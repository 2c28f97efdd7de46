"""The sub-room disk."""

__all__: list[str] = []
