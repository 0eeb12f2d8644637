"""What every list of the console has: search and filters, pages by key, and what is shown as a file."""
