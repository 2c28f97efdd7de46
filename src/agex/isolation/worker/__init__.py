"""The sub-room worker."""

__all__: list[str] = []
