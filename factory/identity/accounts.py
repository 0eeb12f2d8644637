"""Accounts for the console: who can sign in with a password, and the link by which somebody sets one.

An account is one person's in all tenants, and its name is their address. So nobody is given it by a tenant's
administrator: the link goes to the mailbox, or is printed by who runs the installation.
"""

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from factory.kernel.addresses import is_address, normal_address
from factory.kernel.locking import one_at_a_time
from factory.kernel.models import User

NO_ACCOUNT = "They have no account yet."
NO_MAILBOX = "Only an address has a mailbox, which proves whose it is."
ASK_THE_HOST = "Who runs the installation can say why: manage.py sign_in_link names what stands against it."
"""Of an account that may be another tenant's person's, no tenant learns more."""


def account_of(subject: str) -> User | None:
    """Return the account by which somebody signs in as this subject, if there is one."""
    return User.objects.filter(subject=subject).first()


def why_no_sign_in(account: User | None) -> str:
    """Return why nobody can sign in by an account with a password; nothing where somebody can.

    The sign-in form asks this too, after it has compared the password.
    """
    if account is None:
        return NO_ACCOUNT
    if not account.is_active:
        return "The account is switched off: who runs the installation switches it on."
    if not account.has_usable_password():
        return "The account has no password yet."
    return ""


def why_no_link(subject: str) -> str:
    """Return why nobody can be given a link for this subject; nothing where they can."""
    if not is_address(subject):
        return NO_MAILBOX
    account, address = account_of(subject), normal_address(subject)
    if account is None and User.objects.filter(email=address).exists():
        return "The account of this address is known by another name: who runs the installation mends that."
    if account is not None and account.email != address:
        return "The account of this name has another address: who runs the installation mends that."
    return why_no_sign_in(account) if account is not None and not account.is_active else ""


def why_no_link_here(subject: str) -> str:
    """Return of `why_no_link` what a tenant may read: nothing about the account."""
    hindrance = why_no_link(subject)
    return ASK_THE_HOST if hindrance and is_address(subject) else hindrance


def open_account(subject: str, tenant_id: str) -> User:
    """Return the account of a subject that `why_no_link` has nothing against, inside a command. If there is
    none, it is made, without a password, and is known to be this tenant's."""
    one_at_a_time("factory.account", subject)
    found = account_of(subject)
    return found or User.objects.create_user(subject, subject=subject, is_staff=True, opened_by=tenant_id)


def sign_in_link(account: User) -> str:
    """Return an address at which whoever opens it sets the account's password: once, and within the hours
    that the settings say. A password that is set, or a sign-in, ends every link from before."""
    key, token = urlsafe_base64_encode(force_bytes(account.pk)), default_token_generator.make_token(account)
    return f"{settings.FACTORY_PUBLIC_URL}{reverse('admin:sign_in_link', args=[key, token])}"


def link_hours() -> int:
    """Return for how long a link is good."""
    return int(settings.PASSWORD_RESET_TIMEOUT) // 3600
