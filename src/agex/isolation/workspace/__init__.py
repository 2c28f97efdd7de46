"""The workspace as a real directory of a worker, for code that is not guarded.

The worker's current directory is an overlay: a lower directory of the workspace's files, which workers share
and none can change, and an upper one in memory. The host reads the upper one after each action, through a
descriptor, and the changes become changes of the workspace.

In reading order: `walk` (a directory of a hostile process, read through a descriptor), `lower` (the shared
directories), `process_control` (a worker held still), `report` (a directory that the host cannot look into),
`directory` (one worker's directory, as the host sees it), `requests` (the worker's end).

Nothing here follows a link, opens a device, or believes what a worker says of its files.
"""

__all__: list[str] = []
