"""The sub-room rpc."""

__all__: list[str] = []
