"""Classes: those that guest code makes, those of the host, and the stand-ins in between.

This room knows of each class whether guest code made it, and checks what a class statement or a metaclass may
make. It never decides about the attribute of an object: that is the room `guards`. Nor does it read source
text, import anything for guest code, or know a library. In reading order:

* `class_registry`: the register of guest classes, pure and mixed
* `guest_type`: ``type`` as guest code holds it, and the stand-ins of other metaclasses
* `namespace`: checks of the namespace of a new class
* `hook_guards`: guards around hooks, put in place before a class is made
* `unsafe_protocols`: protocols that guest objects may not speak: memory addresses, schemas, futures
* `host_calls`: limits on guest methods that the host calls implicitly
* `host_classes`: facts about host classes, such as the private names that they use
* `stand_ins`, `sealed_classes`: classes that guest code gets in place of real ones
* `views`: ``vars`` of a class
* `generic_classes`, `abc_register`, `lru_caches`, `deepcopy_memo`: ``G[int]``, ``register``, caches, copies
* `identity`, `super_lookup`, `errors`: look-ups that call no guest code, and the messages of refusals
"""

__all__: list[str] = []
