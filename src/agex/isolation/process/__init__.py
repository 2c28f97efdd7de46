"""The sub-room process."""

__all__: list[str] = []
