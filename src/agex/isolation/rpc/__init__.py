"""Remote use of objects: host objects and commands and files from a worker, guest functions from the host.

In reading order: `task_environment` (what sessions of a task share); `signatures` and `declarations`; in
the host `host_objects`, `guest_functions`, `command_rpc`, `file_rpc`; in the worker `host_proxies`,
`guest_codecs`; `policy_codec` with `class_pickler` and `module_sources` for the grants of a policy.

The host decides what may be used, under the policy of the task; a worker is never believed.
"""

__all__: list[str] = []
