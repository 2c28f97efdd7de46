"""The state of a run: who runs, how long, with which output, and what holds the process meanwhile.

This room never looks at source text and never decides about attributes. In reading order:

* `context`: which session runs here, and who called
* `scopes`: namespaces as guest code sees them
* `provenance`: the source and the session of guest functions and classes
* `limits`: limits of time, memory, files and stack
* `deadline`: the clock of a run, by signal, watchdog thread or stop checks
* `kill_switch`: the flag and the code that end a run
* `host_time`: host functions whose time does not count
* `foreign_threads`: threads of libraries that call guest functions
* `output`: captured ``print`` and the text of a last value
* `result`: the result of a run
* `audit_hook`: the second boundary, which refuses files, network and processes
* `workspace_files`: the files of a workspace, in place of those of the host
* `asyncio_cleanup`: callbacks and generators that guest code leaves in an event loop
* `settings_snapshot`, `process_state`: settings of the process, restored after a run
"""

__all__: list[str] = []
