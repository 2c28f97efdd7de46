"""The language of guest code: source text to guarded code objects.

This room works on syntax trees. It never runs guest code and never looks at objects; what it cannot decide
from the text becomes a call of a helper, which the guards answer. In reading order:

* `compiler`: parse, transform, compile, inspect, cache
* `transformer`: one verdict for each kind of node
* `attributes`: attribute access and augmented assignment
* `stop_checks`: loops, comprehensions, ``try`` and ``with``
* `match_patterns`: patterns of ``match`` and their stand-in classes
* `annotations`: annotations, evaluated by the program itself on Python 3.14
* `local_variables`: variables whose guards can be shared
* `traversal`: nodes that are allowed as they are
* `nodes`: builders of the nodes that are added
* `exec_namespaces`: dicts passed to ``exec``
* `module_variables`: variables that hold modules
"""

__all__: list[str] = []
