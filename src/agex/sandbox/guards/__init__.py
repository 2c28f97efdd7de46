"""Guards: the checks that transformed code calls at run time, and the builtins that it runs with.

This room decides about each attribute that guest code reads, sets or deletes, by the receiver, its class and
the policy. It refuses by raising, and never answers with a default. It never transforms source text, makes no
registrations and stops no run. In reading order:

* `guards`: the checks of one session
* `builtins`: the builtins of guest code: ``getattr``, ``vars``, ``dir``, ``eval``, ``exec`` and others
* `attribute_doors`: functions that decide about contested names, one for each
* `class_doors`: the same for special names of classes, such as ``__init__`` and ``__setattr__``
* `wrapped_functions`: functions behind partials, context managers and properties
* `receivers`: objects that attributes are read from in place of a receiver
* `strict_checks`: further checks of a strict policy, at every attribute
* `verdict_cache`: verdicts that hold for all objects of a class
* `import_statement`: the import statement of guest code
* `workspace_modules`: modules that guest code wrote, as files of its workspace
"""

__all__: list[str] = []
