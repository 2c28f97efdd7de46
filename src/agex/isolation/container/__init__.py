"""The sub-room container."""

__all__: list[str] = []
