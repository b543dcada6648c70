"""The progress of a run on stderr: files, chunks, rate and time left. Drawn only on a terminal."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["Bar"]

# Every step has a line of its own only while it runs, so that what stays on the screen is the result.
LABELS = {"scan": "looking", "hash": "hashing", "parse": "reading", "embed": "embedding", "publish": "publishing"}


class Bar:
    """Draws what a run tells. A context manager; leaving it clears the lines."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._stage = self._progress.add_task("looking", total=None, count="", rate="", visible=True)
        self._files = self._progress.add_task("files", total=1, count="", rate="", visible=False)
        self._chunks = self._progress.add_task("chunks", total=1, count="", rate="", visible=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def step(self, name: str) -> None:
        """Show the name of the step."""
        busy = name not in {"parse", "embed"}
        self._progress.update(self._stage, description=LABELS.get(name, name), visible=busy)

    def files(self, done: int, total: int) -> None:
        """Move the bar of files."""
        self._progress.update(
            self._files, completed=done, total=total, count=f"{done}/{total} files", visible=done < total
        )

    def chunks(self, done: int, known: int) -> None:
        """Move the bar of chunks, and show how many a second."""
        total = max(known, 1)
        self._progress.update(self._chunks, completed=done, total=total, count=f"{done}/{known} chunks", visible=True)
        speed = self._progress.tasks[self._chunks].speed
        self._progress.update(self._chunks, rate=f"{speed:.0f}/s" if speed else "")
