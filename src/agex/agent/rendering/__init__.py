"""The sub-room."""

__all__: list[str] = []
