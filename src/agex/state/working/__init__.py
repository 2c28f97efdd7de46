"""The working copy: variables and files of tasks and host on top of a commit, and how they merge.

This room reads and writes commits through a journal and knows no store. In order: the `view` of one task,
`variables`, `stored_variables`, `tracked_files`, `working_copy`, `open_tasks`, `merging`.
"""

__all__: list[str] = []
