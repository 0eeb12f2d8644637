"""The words that the console's templates share."""
