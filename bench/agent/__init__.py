"""What a turn costs beside the model: the loop, the record, the guarded run and the prompt."""
