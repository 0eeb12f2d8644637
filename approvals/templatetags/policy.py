"""The policy's words on the pages: what records keep for programs is said to people here."""

from django import template

from approvals.policy import telling

register = template.Library()
register.filter("in_words", telling.in_words)
