"""`{% load house %}`: badge, short, when, span, usd."""

from django import template

from factory.admin import show

register = template.Library()
for name in ("badge", "outline", "short", "when", "span", "usd", "tone"):
    register.filter(name, getattr(show, name))
