"""Record on a CPU which operators of a step would make the CPU wait for a GPU."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Waits(TorchDispatchMode):
    """Records the names of operators for which the CPU would wait for a GPU.

    They copy a value to the CPU, or their output has a size that depends on values. Indexing by a
    bool tensor is one of these.
    """

    OPERATORS = ('_local_scalar_dense', 'nonzero', 'unique', 'masked_select', 'equal')

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name()
        if any(operator in name for operator in self.OPERATORS):
            self.names.append(name)
        if name.startswith('aten::index') and any(
            isinstance(index, Tensor) and index.dtype == torch.bool
            for index in (args[1] if isinstance(args[1], (list, tuple)) else ())
        ):
            self.names.append(f'{name} by booleans')
        return func(*args, **(kwargs or {}))
