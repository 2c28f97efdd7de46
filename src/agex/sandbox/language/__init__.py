"""The sub-room language."""

__all__: list[str] = []
