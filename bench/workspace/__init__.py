"""What a workspace costs: 10,000 files and 500 MB in a directory, and turns that touch one of them."""
