"""The sub-room working."""

__all__: list[str] = []
