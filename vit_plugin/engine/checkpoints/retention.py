"""Which checkpoints of a run to keep or delete, by their names, and leftovers of killed writers."""

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

# Temporary names next to the files of a run, see `anyfolder.complete.replacing` and
# `folder.write_folder`.
LEFTOVER = re.compile(r'\.(?P<stem>.+)\.([0-9a-f]{8}(\.\w+)?|saving|before)')
# The files of a run without their suffix. A config may give its checkpoints other names.
RUN_FILES = re.compile(
    r'(epoch|iter)_\d+|best_.+|shared|last_checkpoint|preempted|\.running|metrics|results|classes'
    r'|labels|train_batch|val_\w+|learning_curve|confusion_matrix|precision_recall'
    r'|non_finite_step_\d+'
)


def _check_template(template: str) -> str:
    """Reject a template that gives two epochs the same name, or a path instead of a name."""
    try:
        names = {template.format(number) for number in (1, 2)}
    except (AttributeError, LookupError, TypeError, ValueError):
        names = set()
    if len(names) < 2 or any(Path(name).name != name for name in names):
        raise ValueError(
            "Input should be a file name with one place for the number, such as 'epoch_{}.pth'"
        )
    return template


Template = Annotated[str, AfterValidator(_check_template)]


@dataclass(frozen=True)
class Retention:
    """Which checkpoints of a run are kept.

    Attributes:
        template: their name, with a placeholder for the number.
        keep_last: number of recent checkpoints to keep, all if not positive.
        keep_every: also keep checkpoints whose number is a multiple of this.
    """

    template: str
    keep_last: int
    keep_every: int | None

    def is_own(self, name: str) -> bool:
        """True if this run could have given this name to a checkpoint."""
        template, stem = self.template.removesuffix('.pth'), name.removesuffix('.pth')
        # A best checkpoint has a prefix before this name, and `save_now` always uses iter_NUMBER.
        return Path(name).name == name and any(
            stem.endswith((template.format(number), f'iter_{digits}'))
            for digits, number in _numbers_in(name)
        )

    def outdated(self, names: Sequence[str]) -> list[str]:
        """The ``names`` to delete. Both lists have the oldest first."""
        old = names[: -self.keep_last] if self.keep_last > 0 else []
        # Without the suffix: a resumed run may save folders after files, or files after folders.
        template = self.template.removesuffix('.pth')
        kept = {
            template.format(number)
            for name in old
            for _, number in _numbers_in(name)
            if self.keep_every and number % self.keep_every == 0
        }
        return [name for name in old if name.removesuffix('.pth') not in kept]


def _numbers_in(name: str) -> list[tuple[str, int]]:
    """The numbers in a name, each as text and as an integer."""
    return [(digits, int(digits)) for digits in re.findall(r'\d+', name)]


def remove_leftovers(folders: Iterable[str], retention: Retention) -> None:
    """Remove what killed writers left behind, also of checkpoints with the names of this run.

    The work directory is locked, so nobody else writes here.
    """
    for folder in (Path(folder) for folder in folders if '://' not in folder):
        for path in folder.glob('.*'):
            match = LEFTOVER.fullmatch(path.name)
            if not match or not (
                RUN_FILES.fullmatch(match['stem']) or retention.is_own(match['stem'])
            ):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
