"""The schema's fingerprint: lines that say what the database is made of, compared with what it should be."""
