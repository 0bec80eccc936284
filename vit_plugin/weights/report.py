"""The report of loading weights: what became of every key of the checkpoint and of the model."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

MAX_LISTED = 6  # keys in one line
HARMLESS = 'which changes nothing'  # the end of reasons that do not change the model's outputs


@dataclass
class Report:
    """The result of loading a checkpoint. Print it to see a short table.

    Attributes:
        format: name of the checkpoint's format.
        matched: our key -> the keys of the checkpoint for it.
        adapted: our key -> how its tensor was adapted to the model.
        initialized: our keys that kept their initialization -> the reason.
        ignored: unused keys of the checkpoint -> the reason.
        numerics: how the weights' own code computes otherwise than the model -> the setting that
            makes the model compute so.
        notes: other facts for the user.
    """

    format: str
    matched: dict[str, tuple[str, ...]] = field(default_factory=dict)
    adapted: dict[str, str] = field(default_factory=dict)
    initialized: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    numerics: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def untrained(self) -> dict[str, str]:
        """Entries of ``initialized`` that change what the model computes."""
        return {ours: why for ours, why in self.initialized.items() if not why.endswith(HARMLESS)}

    def with_prefix(self, prefix: str) -> 'Report':
        """The same report with a prefix before our keys."""
        entries: dict[str, Any] = {
            name: {f'{prefix}{ours}': value for ours, value in getattr(self, name).items()}
            for name in ('matched', 'adapted', 'initialized')
        }
        return replace(self, **entries)

    def __str__(self) -> str:
        lines = (
            [f'matched      {len(self.matched)} tensors from the format {self.format}']
            if self.matched
            else []
        )
        for name in ('adapted', 'initialized', 'ignored'):
            reasons: dict[str, list[str]] = {}
            for key, reason in getattr(self, name).items():
                reasons.setdefault(reason, []).append(key)
            lines += [
                f'{name:<12} {shortened_list(keys)} ({reason})' for reason, keys in reasons.items()
            ]
        notes = [*self.notes, *(f'{found}: {cure}' for found, cure in self.numerics.items())]
        return '\n'.join(lines + [f'note         {note}' for note in notes])


def shortened_list(keys: Iterable[str]) -> str:
    """The first few keys, and the number of the others."""
    keys = list(keys)
    return ', '.join(keys[:MAX_LISTED]) + (
        f' and {len(keys) - MAX_LISTED} more' if len(keys) > MAX_LISTED else ''
    )
