"""What stands on a person's first page."""
