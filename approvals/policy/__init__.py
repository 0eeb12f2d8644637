"""The policy: a document that says which action needs whose decision. Pure: no database, no clock."""
