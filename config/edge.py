"""The settings of the edge: whom we trust, how REST behaves, what the schema says about itself."""

import os
from pathlib import Path
from typing import Any

from environs import Env

env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent

IDENTITY: dict[str, Any] = {
    # [{"issuer": …, "jwks_url" or "jwks_file": …, "tenants": […]?}]
    "issuers": env.json("FACTORY_TRUSTED_ISSUERS", []),
    # On where the database is our own private one, off elsewhere unless somebody switches it on.
    "embedded": env.bool("FACTORY_EMBEDDED_ISSUER", "DATABASE_URL" not in os.environ),
    "embedded_issuer": env.str("FACTORY_EMBEDDED_ISSUER_NAME", "urn:factory:embedded"),
    "secrets_dir": env.str("FACTORY_SECRETS_DIR", str(BASE_DIR / "var" / "secrets")),
    "person_audience": env.str("FACTORY_TOKEN_AUDIENCE", "factory-api"),
    "worker_audience": env.str("FACTORY_WORKER_TOKEN_AUDIENCE", "factory-workers"),
    "claims": {
        "tenant": env.str("FACTORY_CLAIM_TENANT", "tenant_id"),
        "project": env.str("FACTORY_CLAIM_PROJECT", "project_id"),
        "scope": env.str("FACTORY_CLAIM_SCOPE", "scope"),
        "roles": env.str("FACTORY_CLAIM_ROLES", "roles"),
        "pool": env.str("FACTORY_CLAIM_POOL", "pool"),
    },
    "leeway_seconds": env.int("FACTORY_TOKEN_LEEWAY_SECONDS", 5),
}
