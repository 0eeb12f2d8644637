"""What the launcher shows: coloured in a terminal, plain lines anywhere else."""

import sys
import threading
import time

from rich.console import Console
from rich.text import Text

STATE_STYLES = {
    "Completed": "bold green",
    "Failed": "bold red",
    "Cancelled": "yellow",
    "WaitingForApproval": "bold magenta",
}


class Terminal:
    """Lines in the order in which they happen, from whichever thread."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True, file=sys.stdout)
        self._lock = threading.Lock()
        self.began = time.monotonic()

    def part(self, what: str, words: str, seconds: float | None = None) -> None:
        """A part of the product that is up now."""
        line = Text(f"{what:<10} ", style="bold").append(f"{words:<58}", style="not bold")
        if seconds is not None:
            line.append(f" {seconds:5.1f} s", style="not bold dim")
        self._print(line)

    def heading(self, words: str) -> None:
        self._print(Text(words, style="bold"))

    def moment(self, seconds: float, state: str, words: str) -> None:
        """One thing that happened to a run, `seconds` after its submission."""
        line = Text(f"  {seconds:6.2f}  ", style="dim")
        line.append(f"{state:<19} ", style=STATE_STYLES.get(state, "not dim")).append(words, style="not dim")
        self._print(line)

    def detail(self, words: str) -> None:
        self._print(Text(" " * 10 + words))

    def note(self, words: str) -> None:
        self._print(Text(words, style="yellow"))

    def fault(self, words: str) -> None:
        self._print(Text(words, style="bold red"))

    def plain(self, words: str) -> None:
        """A line for programs: no style, no wrapping."""
        with self._lock:
            self._console.file.write(words + "\n")
            self._console.file.flush()

    def _print(self, line: Text) -> None:
        line.rstrip()
        with self._lock:
            self._console.print(line)
            self._console.file.flush()
