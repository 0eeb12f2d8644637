"""Webhooks: what a tenant's admins may do about them, how an event is signed, and how it is sent."""
