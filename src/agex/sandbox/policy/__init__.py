"""The policy: the modules, classes, functions and members that guest code may use.

This room turns the registrations of a host into grants and answers questions about them. It never looks at
source text, never runs guest code, and imports no library before the host grants it. In reading order:

* `policy`: the registrations, and the decisions drawn from them
* `module_grant`: a granted module, as a copy of its allowed members
* `exclusions`: members that a module's registration leaves out of all classes of its package
* `member_rules`: members that registrations leave out of single classes
* `spelling`: misspelled names in registrations
* `advice`: the advice in refusals of modules and members
* `evaluators`: packages that run text as code, and are not registered as a whole
* `native`: packages with compiled code that have no policy
* `library`: the policy of one library, as data
* `catalog`: the table of libraries that have one
* `library_grant`: a module of such a library
* `library_members`: verdicts and guards for members of its objects
* `library_classes`: its rules for guest classes
* `browser`: objects of Pyodide, in a browser tab
"""

__all__: list[str] = []
