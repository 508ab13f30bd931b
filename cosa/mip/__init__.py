"""The mixed-integer program."""
