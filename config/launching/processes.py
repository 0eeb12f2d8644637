"""Which processes make up the product, and how each is started."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
LOCAL = "127.0.0.1"
WORKER_NAME = "demo-worker"
POOL = "demo"
KEPT_FOR_WORKERS = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """Hold what one launch needs to know: folders, ports and the variables of the servers."""

    root: Path
    home: Path
    port: int
    stream_port: int
    servers: Mapping[str, str]

    @property
    def web_url(self) -> str:
        return f"http://{LOCAL}:{self.port}"

    @property
    def worker_url(self) -> str:
        return f"http://{LOCAL}:{self.stream_port}/factory"

    @property
    def worker_token(self) -> Path:
        return self.home / "secrets" / "demo_worker_token"

    @property
    def artifacts(self) -> Path:
        """The repository that reports are committed to."""
        return Path(os.environ.get("FACTORY_ARTIFACT_REPOSITORY", self.home / "artifacts.git"))

    def environment(self, process: str) -> dict[str, str]:
        """The other roles' URLs go to nobody but the commands, and the jobs that verify, anchor and purge."""
        passed = {key: value for key, value in os.environ.items() if not key.startswith("DATABASE_")}
        allowed = {"DATABASE_URL", "REDIS_URL"} if process != "command" else set(self.servers)
        if process == "job":
            allowed |= {"DATABASE_AUDITOR_URL", "DATABASE_RETENTION_URL"}
        return passed | {
            **{name: url for name, url in self.servers.items() if name in allowed},
            "FACTORY_HOME": str(self.home),
            "FACTORY_PROCESS": process,
            "FACTORY_PUBLIC_URL": os.environ.get("FACTORY_PUBLIC_URL", self.web_url),
            "FACTORY_EMBEDDED_ISSUER": os.environ.get("FACTORY_EMBEDDED_ISSUER", "true"),
            # The bundled release comes from this very checkout.
            "FACTORY_GIT_LOCAL_ROOTS": os.environ.get("FACTORY_GIT_LOCAL_ROOTS", str(self.root)),
            # Whoever kills a launcher and starts it again should not wait two minutes for the work in hand.
            "FACTORY_LEASES_DURATION_SECONDS": os.environ.get("FACTORY_LEASES_DURATION_SECONDS", "30"),
            "FACTORY_LEASES_RENEWAL_GRACE_SECONDS": os.environ.get(
                "FACTORY_LEASES_RENEWAL_GRACE_SECONDS", "5"
            ),
            "FACTORY_METRICS_DIR": os.environ.get("FACTORY_METRICS_DIR", str(self.home / "metrics")),
            "PYTHONUNBUFFERED": "1",
        }

    def worker_environment(self) -> dict[str, str]:
        """A worker speaks HTTP only: it gets no database, no broker and no key."""
        kept = {key: value for key, value in os.environ.items() if key in KEPT_FOR_WORKERS}
        gateway = {key: value for key, value in os.environ.items() if key.startswith("MODEL_GATEWAY_")}
        own = {"FACTORY_ARTIFACT_REPOSITORY": str(self.artifacts), "PYTHONUNBUFFERED": "1"}
        return kept | gateway | own

    def web(self) -> list[str]:
        return [PYTHON, "-m", "config.serving.web", "--host", LOCAL, "--port", str(self.port)]

    def stream(self) -> list[str]:
        return [PYTHON, "-m", "config.serving.stream", "--host", LOCAL, "--port", str(self.stream_port)]

    def job(self) -> list[str]:
        return [
            PYTHON, "-m", "celery", "-A", "config", "worker", "--concurrency", "2", "--loglevel", "INFO",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ]  # fmt: skip

    def beat(self) -> list[str]:
        schedule = str(self.home / "beat-schedule")
        return [
            PYTHON,
            "-m",
            "celery",
            "-A",
            "config",
            "beat",
            "--loglevel",
            "INFO",
            "-s",
            schedule,
            "--pidfile=",
        ]

    def relay(self) -> list[str]:
        return [PYTHON, "manage.py", "relay"]

    def worker(self) -> list[str]:
        return [
            PYTHON, "-m", "runs.worker", "--url", self.worker_url, "--token-file", str(self.worker_token),
            "--name", WORKER_NAME, "--pool", POOL, "--cache", str(self.home / "worker"),
            "--drain-seconds", "1",
        ]  # fmt: skip
