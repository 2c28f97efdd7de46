"""What the state costs, each figure beside the floor it stands on, taken in the same run."""
