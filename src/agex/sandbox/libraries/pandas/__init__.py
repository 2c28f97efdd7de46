"""The sub-room pandas."""

__all__: list[str] = []
