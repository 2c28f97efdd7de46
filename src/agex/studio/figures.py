"""The document in which the page draws plotly figures, with the script that the installed plotly ships.

A figure is an agent's: its data alone goes there, by a message. The document has an origin of its
own and may run these two scripts and no other, load nothing and send nothing.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FIGURE", "Drawing", "drawing", "with_figures"]

FIGURE = "figure.html"
"""Where the document is, beside the page."""

_DRAW = """
addEventListener("message", (event) => {
  if (event.source !== parent) return;
  const { data, layout } = event.data;
  const sized = { ...layout, autosize: true };
  delete sized.width;
  delete sized.height;
  Plotly.newPlot("figure", data, sized, { displaylogo: false, responsive: true });
});
"""
_STYLE = "html,body,#figure{height:100%;margin:0}"


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A document, which names its policy, and the policy, which a server says as well."""

    document: bytes
    policy: str


def with_figures(index: bytes) -> bytes:
    """Return the page, told where figures are drawn."""
    return index.replace(
        b'name="agex-figures" content=""', f'name="agex-figures" content="{FIGURE}"'.encode(), 1
    )


def drawing() -> Drawing | None:
    """Return the document; None where plotly is not installed, which is not imported for it."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        return None
    plotly = (Path(spec.origin).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {_hashed(plotly)} {_hashed(_DRAW)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    document = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<title>figure</title><style>{_STYLE}</style><div id="figure"></div>'
        f"<script>{plotly}</script><script>{_DRAW}</script>"
    )
    return Drawing(document=document.encode(), policy=policy)


def _hashed(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
