"""What the person at the keyboard may choose."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LaunchOptions:
    """Hold what the person at the keyboard may choose."""

    root: Path
    home: Path
    port: int = 8000
    stream_port: int = 7402
    repository: str = ""
    revision: str = ""
