"""Pages of projects, of who is what in them, and of what no longer opens them."""

from projects.admin import belonging, credentials, delegations, members, places  # noqa: F401  registers the pages
