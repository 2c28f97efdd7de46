"""The sub-room numpy."""

__all__: list[str] = []
