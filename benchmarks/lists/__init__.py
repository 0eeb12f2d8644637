"""How long the console takes for its lists in a house of a million runs, and what is read for them."""
