"""What the page of one thing shows."""
