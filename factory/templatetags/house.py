"""`{% load house %}`: badge, short, when, span, usd, tone, pretty."""

from django import template

from factory.admin import show

register = template.Library()
for name in ("badge", "outline", "short", "when", "span", "usd", "tone", "pretty", "seen"):
    register.filter(name, getattr(show, name))
