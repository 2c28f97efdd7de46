"""A question about a file, answered in this process: the guards are for code that means well.

Run it with ``python examples/tinyagent_local.py [--model MODEL]``; see ``funcy.py`` for the model
it needs. Without ``model=``, a ``TinyCodeAgent`` asks gpt-4o-mini.

The small local model (0.5B) manages this one, in one step.
"""

import argparse
import tempfile
from pathlib import Path

from agex.tinyagent import ExecutionLimits, TinyCodeAgent, TrustLevel

DATA = "day,value\nmon,12\ntue,15\nwed,9\nthu,18\n"


def main(model: object = None) -> None:
    """Write a small file, ask about it, and show the answer with what it took."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "data.csv").write_text(DATA, encoding="utf-8")
        agent = TinyCodeAgent(
            model=model,
            trust_level=TrustLevel.LOCAL,
            limits=ExecutionLimits(timeout_seconds=60.0, max_output_bytes=50000),
            extra_imports=["pandas", "numpy"],
            working_directory=directory,
        )
        result = agent.run_sync(
            "Read data.csv, calculate the mean of column 'value', and return the result",
            return_result=True,
        )
    print(result.output if result.error is None else f"no answer: {result.error}")
    print(f"{result.steps_taken} steps, {result.usage.tokens} tokens, {result.duration_seconds:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
