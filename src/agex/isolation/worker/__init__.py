"""Workers and both ends of a session over them.

In reading order: in the host `host_session`, `connection`, `session_variables`, `host_requests`, `launch`;
in the worker `zygote`, `server`, `environment`, `rlimits`.

The host never believes a worker; a worker never outlives its host.
"""

__all__: list[str] = []
