"""The sub-room classes."""

__all__: list[str] = []
