"""To which project what the evidence says of members belongs; who is one in the whole tenant, to none."""

from factory.console.project_of import belongs
from projects.models import Delegation, Membership, Project

belongs(Project, "project", to="pk")
belongs(Membership, "membership")
belongs(Delegation, "delegation")
