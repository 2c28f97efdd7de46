"""Policy of polars."""

from __future__ import annotations
