"""The skills of the assessment. They read git's object store: nothing is checked out."""
