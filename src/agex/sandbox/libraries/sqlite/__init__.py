"""The sub-room sqlite."""

__all__: list[str] = []
