"""Findings while reading data: repairs, omissions and errors, each with its first examples."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError
from anyfolder.wording import option

KEPT = 1000  # examples of each kind in the report
SHOWN = 500  # characters of an example: a line of a file may have a million
MAX_STRAY_SHARE = 0.01  # share of objects that may be wrong by accident, as in public sets


@dataclass
class FindingKind:
    """Everything of one kind."""

    tolerated: bool = False  # whether a few may be wrong by accident
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        self.count += 1
        if len(self.examples) < KEPT:
            cut = f'{example[: SHOWN // 2]} ... {example[-SHOWN // 2 :]}'
            self.examples.append(example if len(example) <= SHOWN else cut)


@dataclass
class Findings:
    """Findings in a data set.

    Attributes:
        skip_invalid: whether what is wrong is left out. Otherwise it is an error.
        noted: what was repaired or left out, and why.
        wrong: what cannot be right: a sentence's subject and verb, and the remedy after it ->
            where.
        left_out: paths of files that were named with a reason.
    """

    skip_invalid: bool = False
    warnings: dict[str, FindingKind] = field(default_factory=dict)
    wrong: dict[tuple[str, str], FindingKind] = field(default_factory=dict)
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

    def lose(self, what: str, file: Path, example: Any) -> None:
        """Record rows or lines of a file that are left out because their image is missing."""
        self.warn(f'{what} of {file.name} left out, whose image is not there', example)

    def reject(self, what: str, remedy: str, example: str, tolerated: bool = False) -> None:
        """Something is wrong, and left out. Unless that was asked for, :meth:`check` raises.

        Args:
            what: what is wrong, in the plural: ``'boxes lie outside of their image'``.
            remedy: what to do: ``'correct them'``.
            example: where, and the value.
            tolerated: whether a few in many are an accident, which is said and is not an error.
        """
        self.wrong.setdefault((what, remedy), FindingKind(tolerated)).add(example)

    def note(self, what: str, example: str, remedy: str = '') -> None:
        """Something is wrong, if there is a remedy, or else was left out."""
        if remedy:
            self.reject(what, remedy, example)
        else:
            self.warn(what, example)

    def note_all(self, faults: Iterable[tuple[str, str, str]]) -> None:
        """The same for several, each the arguments of :meth:`note`."""
        for fault in faults:
            self.note(*fault)

    def check(self, objects: int = 0) -> None:
        """Raise a ``InputError`` about what is wrong, unless it is to be left out.

        Args:
            objects: number of objects of the data set, by which strays are judged.
        """
        serious = {
            key: kind
            for key, kind in self.wrong.items()
            if not kind.tolerated or kind.count > MAX_STRAY_SHARE * objects
        }
        if self.skip_invalid or not serious:
            return
        (what, remedy), kind = next(iter(serious.items()))
        others = sum(other.count for other in serious.values()) - kind.count
        more = f' {others} more are wrong in other ways.' if others else ''
        raise InputError(
            f'{what} ({kind.count}, the first is {kind.examples[0]}); {remedy}, or leave '
            f'them out by {option("skip_invalid", True)}.{more}'
        )

    def rows(self) -> list[tuple[str, int, list[str]]]:
        """Kind, count and examples, errors first."""
        wrong = [
            (f'left out, since they are wrong: {what}', kind)
            for (what, _), kind in self.wrong.items()
        ]
        return [
            (what, kind.count, kind.examples) for what, kind in [*wrong, *self.warnings.items()]
        ]
