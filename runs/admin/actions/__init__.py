"""Pages that ask before a command, and what comes of it."""
