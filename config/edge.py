"""The settings of the edge: whom we trust, how REST behaves, what the schema says about itself."""

import os
from pathlib import Path
from typing import Any

from config.environment import document, flag, integer, text

BASE_DIR = Path(__file__).resolve().parent.parent

IDENTITY: dict[str, Any] = {
    # [{"issuer": …, "jwks_url" or "jwks_file": …}], and what docs/how-to/run-it-for-real.md adds
    "issuers": document("FACTORY_TRUSTED_ISSUERS", []),
    # On where the database is our own private one, off elsewhere unless somebody switches it on.
    "embedded": flag("FACTORY_EMBEDDED_ISSUER", "DATABASE_URL" not in os.environ),
    "embedded_issuer": text("FACTORY_EMBEDDED_ISSUER_NAME", "urn:factory:embedded"),
    "secrets_dir": text(
        "FACTORY_SECRETS_DIR", str(Path(text("FACTORY_HOME", str(BASE_DIR / "var"))) / "secrets")
    ),
    "person_audience": text("FACTORY_TOKEN_AUDIENCE", "factory-api"),
    "worker_audience": text("FACTORY_WORKER_TOKEN_AUDIENCE", "factory-workers"),
    "claims": {
        "tenant": text("FACTORY_CLAIM_TENANT", "tenant_id"),
        "project": text("FACTORY_CLAIM_PROJECT", "project_id"),
        "scope": text("FACTORY_CLAIM_SCOPE", "scope"),
        "roles": text("FACTORY_CLAIM_ROLES", "roles"),
        "pool": text("FACTORY_CLAIM_POOL", "pool"),
        "email": text("FACTORY_CLAIM_EMAIL", "email"),
        "email_verified": text("FACTORY_CLAIM_EMAIL_VERIFIED", "email_verified"),
    },
    "leeway_seconds": integer("FACTORY_TOKEN_LEEWAY_SECONDS", 5, least=0, most=120),
}
