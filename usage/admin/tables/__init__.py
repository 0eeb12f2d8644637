"""Lists, and the kinds of things that each shows."""
