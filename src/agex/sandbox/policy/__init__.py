"""The sub-room policy."""

__all__: list[str] = []
