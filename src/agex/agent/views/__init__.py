"""The sub-room views."""

__all__: list[str] = []
