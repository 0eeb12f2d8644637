"""The policy's words on the pages: what records keep for programs is said to people here."""

from django import template

from approvals.policy import messages

register = template.Library()
register.filter("in_words", messages.format_rule)
