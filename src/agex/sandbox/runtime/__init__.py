"""The sub-room runtime."""

__all__: list[str] = []
