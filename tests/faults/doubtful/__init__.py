"""A database backend that commits, and then says that the connection broke: nobody knows what was kept."""
