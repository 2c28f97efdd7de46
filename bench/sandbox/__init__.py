"""How fast guarded code runs, beside plain ``exec`` and beside other sandboxes.

``python -m bench.sandbox`` prints one table. It measures; it never changes what it measures.
"""
