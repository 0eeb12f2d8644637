"""The commands of this app, one file for each thing that they are about."""

from projects.commands.credentials import revoke_credential, revoke_token
from projects.commands.delegations import expire_delegation, lend_role, revoke_delegation
from projects.commands.environments import add_environment
from projects.commands.identities import end_identity, join_identity
from projects.commands.members import add_member, change_member, remove_member
from projects.commands.onboarding import Onboarded, onboard_project, onboard_tenant
from projects.commands.service_accounts import register_service_account, revoke_service_account
from projects.commands.sign_ins import print_sign_in_link, send_sign_in_link
from projects.commands.suspension import kill_project, resume_project, suspend_project

__all__ = [
    "Onboarded",
    "add_environment",
    "add_member",
    "change_member",
    "end_identity",
    "expire_delegation",
    "join_identity",
    "kill_project",
    "lend_role",
    "onboard_project",
    "onboard_tenant",
    "print_sign_in_link",
    "register_service_account",
    "remove_member",
    "resume_project",
    "revoke_credential",
    "revoke_delegation",
    "revoke_service_account",
    "revoke_token",
    "send_sign_in_link",
    "suspend_project",
]
