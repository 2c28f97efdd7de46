"""Messages between host and worker: bytes, frames, values, errors, the outcome of a run.

In reading order: `framing`, `fd_passing`, `codec`, `error_codec`, `deadline`, `run_result`, `worker_channel`.

Everything read here may come from a hostile process: it is bounded, checked, and never unpickled by name.
"""

__all__: list[str] = []
