"""The rules for guest code, as data: names and syntax that it may use. Nothing here runs or checks anything.

* `names`: the ledger of attribute and variable names: denied, allowed, contested
* `ruleset`: the part of a policy that the transformer applies, and the names of its helpers
* `code_flags`: flags of code objects
"""

__all__: list[str] = []
