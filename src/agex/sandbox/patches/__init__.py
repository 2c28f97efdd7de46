"""Changes to the standard library and to libraries that hold for the whole process, made once.

Host code and libraries call the patched functions too. A patch acts only while guest code runs, or on guest
objects, and passes any other call on to the real function. This room never knows policies or sessions: it
asks `agex.sandbox.runtime` whose call it is. Replacements that only guest code sees are in
`agex.sandbox.stdlib`.

- `replacement`: puts a function in the place of another one;
- `methods`: checks ``self`` of methods that write to it;
- `stdlib_caches`, `library_caches`: exact keys for caches of the process;
- `contextlib`, `copy`, `enum`, `inspect`, `threading`, `typing`: one file a patched module;
- `install`: installs all of them, and the audit hook.
"""

__all__: list[str] = []
