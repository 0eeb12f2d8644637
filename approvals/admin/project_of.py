"""To which project what the evidence says of approvals belongs."""

from approvals.models import ApprovalRequest, Authorization, Waiver
from factory.console.project_of import belongs

belongs(ApprovalRequest, "approval")
belongs(Waiver, "waiver")
belongs(Authorization, to="approval__project_id")
