"""What a worker costs at each isolation level, beside what pickle and shared memory cost alone."""
