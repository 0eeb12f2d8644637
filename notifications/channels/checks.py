"""What Django's own checks say about notifications; `check --deploy` shows it."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register


@register(deploy=True)
def mail_is_configured(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Without a mail server nobody is told by e-mail, which is fine to try things out."""
    if settings.FACTORY_EMAIL_ON:
        return []
    problem = "No mail server is set, so nobody is told by e-mail that a decision waits for them."
    return [Warning(problem, hint="Set FACTORY_EMAIL_HOST.", id="notifications.W001")]
