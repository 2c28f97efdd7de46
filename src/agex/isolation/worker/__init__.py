"""Workers and both ends of a session over them.

In reading order: in the host `host_session`, `connection`, `session_variables`, `host_requests`, `launch`;
in the worker `zygote`, `server`, `environment`, `rlimits`; for full Python there `full_python`,
`full_programs`, `full_code`, `own_modules`, `sealed_objects`, `guest_streams`, `soft_deadline` and
`process_refusals`.

The host never believes a worker; a worker never outlives its host.
"""

__all__: list[str] = []
