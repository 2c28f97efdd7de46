"""agex: a language model writes the body of a typed function, next to your own objects.

Two rings. The inner one (``sandbox``, later ``values state files shell isolation``) needs
the standard library only and knows nothing of agents; the outer one (``contract agent
models tinyagent cli testing``) builds on it, on pydantic and on pydantic-ai. Imports go
outward to inward. This package imports lazily: a bare ``import agex`` loads no provider,
no pandas, no numpy and none of the rooms.
"""

from __future__ import annotations

import importlib
from typing import Any
