"""Lazy values, such as tensors that stay in their file until they are used."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from torch import Tensor

Value = TypeVar('Value')
Weights = Mapping[str, Tensor]  # by their names


class Lazy(Mapping[str, Value]):
    """A mapping whose values are read or computed on access."""

    def __init__(self, names: Iterable[str], read: Callable[[str], Value]) -> None:
        self._names, self._read = dict.fromkeys(names), read

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
