"""What a step on a GPU would wait for, counted on the processor."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Waits(TorchDispatchMode):
    """Names what a GPU would wait for: copies to the processor, and sizes that it decides."""

    OPERATORS = ('_local_scalar_dense', 'nonzero', 'unique', 'masked_select', 'equal')

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name()
        if any(one in name for one in self.OPERATORS):
            self.names.append(name)
        if name.startswith('aten::index') and any(
            isinstance(one, Tensor) and one.dtype == torch.bool
            for one in (args[1] if isinstance(args[1], (list, tuple)) else ())
        ):
            self.names.append(f'{name} by booleans')
        return func(*args, **(kwargs or {}))
