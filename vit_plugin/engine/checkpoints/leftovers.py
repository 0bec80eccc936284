"""What writers that were killed have left in a run's folders."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

# The hidden names beside what a run writes, see `writing.replacing` and `storage.Writer`.
LEFTOVER = re.compile(
    r'\.((epoch|iter)_\d+|best_.+|last_checkpoint|preempted|metrics|learning_curve|confusion_matrix|non_finite_step_\d+)'
    r'\.([0-9a-f]{8}(\.\w+)?|saving|before)')


class Leftovers:
    """What is there when a run starts. Another run may be writing it, so it goes only if it has not changed since.

    Args:
        folders: where to look. Remote ones are left alone.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        folders = {Path(folder).resolve() for folder in folders if '://' not in folder}
        self._found = {path: _state(path) for folder in folders for path in folder.glob('.*')
                       if LEFTOVER.fullmatch(path.name)}

    def remove(self) -> None:
        """Remove what has not changed. A run calls it when it has saved something itself."""
        for path, state in self._found.items():
            if _state(path) == state:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        self._found = {}


def _state(path: Path) -> set[tuple[str, int, int]]:
    """Names, sizes and times of the files."""
    files = [path, *path.iterdir()] if path.is_dir() else [path] if path.exists() else []
    return {(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files}
