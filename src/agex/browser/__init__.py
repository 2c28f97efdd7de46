"""agex in a browser tab: a model asked over ``fetch``, a store in IndexedDB, and what a page calls.

``Tab`` is the whole of it for a page; the other names are for Python that puts an agent together
itself. Only the functions that touch the page import ``js`` and ``pyodide``, when they are called:
everything else is plain Python, and no guest code ever gets an object of the page.
"""

from agex.browser.indexeddb import IndexedDBStore
from agex.browser.model import FetchModel
from agex.browser.tab import Tab

__all__ = ["FetchModel", "IndexedDBStore", "Tab"]
