"""Tensors that stay in their file until they are used."""

from collections.abc import Callable, Iterator, Mapping

from torch import Tensor

Weights = Mapping[str, Tensor]  # by their names


class LazyArrays(Mapping):
    """Tensors that are read from the file one at a time, on access."""

    def __init__(self, names: list[str], read: Callable[[str], Tensor]) -> None:
        self._names, self._read = dict.fromkeys(names), read

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
