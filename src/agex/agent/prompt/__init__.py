"""The sub-room prompt."""

__all__: list[str] = []
