"""The sub-room base."""

__all__: list[str] = []
