"""Findings while reading data: repairs, omissions and errors, each with its first examples.

Readers go on after a finding. They :meth:`~Findings.warn` of what they repair or leave out by
design, and :meth:`~Findings.reject` what is invalid. At the end, :meth:`~Findings.check` raises an
error about what is invalid, unless the user wants it left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError
from anyfolder.wording import option

MAX_EXAMPLES = 1000  # examples of each kind of finding
MAX_LETTERS = 500  # characters of an example; a line of a file may have a million
MAX_STRAY_SHARE = 0.01  # fraction of objects that may be wrong by accident, as in public data sets


@dataclass
class FindingKind:
    """All findings of one kind.

    Attributes:
        few_are_tolerated: see :meth:`Findings.reject`.
        count: the number of findings.
        examples: the first of them.
    """

    few_are_tolerated: bool = False
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        """Count a finding, and keep it as an example, shortened, unless there are enough."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            if len(example) > MAX_LETTERS:
                example = f'{example[: MAX_LETTERS // 2]} ... {example[-MAX_LETTERS // 2 :]}'
            self.examples.append(example)


@dataclass
class Findings:
    """Findings in a data set.

    Attributes:
        skip_invalid: whether invalid items are left out. Otherwise they are an error.
        warnings: repairs and omissions, by their description with the reason.
        errors: errors, by their description and the remedy.
        left_out: paths of files that were left out for a stated reason.
    """

    skip_invalid: bool = False
    warnings: dict[str, FindingKind] = field(default_factory=dict)
    errors: dict[tuple[str, str], FindingKind] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)

    def warn(self, what: str, example: Any) -> None:
        """Record a repair or an omission."""
        self.warnings.setdefault(what, FindingKind()).add(str(example))

    def warn_all(self, what: str, examples: Iterable[Any]) -> None:
        """Record several examples of a repair or an omission."""
        for example in examples:
            self.warn(what, example)

    def leave_out_files(self, what: str, files: Iterable[Path]) -> None:
        """Record files that are left out for a known reason, not just because nothing read them."""
        for file in files:
            self.warn(what, file)
            self.left_out.add(str(file))

    def warn_missing_image(self, what: str, file: Path, example: Any) -> None:
        """Record rows or lines of a file that are left out because their image is missing."""
        self.warn(f'{what} of {file.name} left out, since their image is missing', example)

    def reject(self, what: str, remedy: str, example: str, few_are_tolerated: bool = False) -> None:
        """Record an error. Unless errors are to be left out, :meth:`check` raises.

        Args:
            what: the error, in the plural: ``'boxes lie outside of their image'``.
            remedy: the remedy: ``'correct them'``.
            example: the place and the value.
            few_are_tolerated: whether a few errors among many objects raise nothing.
        """
        self.errors.setdefault((what, remedy), FindingKind(few_are_tolerated)).add(example)

    def note(self, what: str, example: str, remedy: str = '') -> None:
        """Record an error if there is a remedy, or else an omission."""
        if remedy:
            self.reject(what, remedy, example)
        else:
            self.warn(what, example)

    def note_all(self, faults: Iterable[tuple[str, str, str]]) -> None:
        """Call :meth:`note` with the fields of each fault: what, example and remedy."""
        for fault in faults:
            self.note(*fault)

    def check(self, objects: int = 0) -> None:
        """Raise an ``InputError`` about the errors, unless these are to be left out.

        Args:
            objects: the number of objects in the data set, to judge a few errors among many.
        """
        serious = {
            key: kind
            for key, kind in self.errors.items()
            if not kind.few_are_tolerated or kind.count > MAX_STRAY_SHARE * objects
        }
        if self.skip_invalid or not serious:
            return
        (what, remedy), kind = next(iter(serious.items()))
        others = sum(other.count for other in serious.values()) - kind.count
        more = f' There are {others} more errors of other kinds.' if others else ''
        raise InputError(
            f'{what} ({kind.count}, the first is {kind.examples[0]}); {remedy}, or leave '
            f'them out by {option("skip_invalid", True)}.{more}'
        )

    def rows(self) -> list[tuple[str, int, list[str]]]:
        """The kind, count and examples of findings, errors first."""
        errors = [(f'left out as invalid: {what}', kind) for (what, _), kind in self.errors.items()]
        return [
            (what, kind.count, kind.examples) for what, kind in [*errors, *self.warnings.items()]
        ]
