"""The problems, a module for each family."""
