"""Tensors that are computed from parameters alone, and kept while those stay what they are."""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

MAX_KEPT = 16


def transformed() -> bool:
    """Whether a transform of ``torch.func`` is at work, whose tensors do not tell their state or memory format."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


class Derives(nn.Module):
    """A module that looks up, in eval mode, what it has computed from its parameters before.

    A write past autograd (``weight.data.copy_``) leaves no trace on a parameter. It mostly comes with a change of mode
    (when an averaged model is swapped in) or after an optimizer's step (when a teacher follows its student), so both
    empty the cache, as loading, moving and casting the module do. After any other such write, call ``eval()`` again.
    """

    steps = 0  # of all optimizers in this process

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kept: dict[Hashable, tuple[tuple, Tensor]] = {}

    def derived(self, compute: Callable[[], Tensor], *sources: Tensor | None, key: Hashable = None) -> Tensor:
        """What ``compute()`` makes of the sources, which are parameters or None.

        In training it is computed each time, for its gradient. ``key`` tells apart what it depends on besides.
        """
        if torch.compiler.is_compiling() or not all(map(self._is_constant, sources)):
            return compute()
        state = (Derives.steps, *((source.data_ptr(), source.device, source.dtype, source._version)
                                  for source in sources if source is not None))
        if key not in self._kept or self._kept[key][0] != state:
            if len(self._kept) >= MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            with torch.inference_mode(False), torch.no_grad():  # an inference tensor could not train later
                self._kept[key] = state, compute()
        return self._kept[key][1]

    def _is_constant(self, source: Tensor | None) -> bool:
        """Whether nothing will ask for its gradient, and it is no tensor of vmap or a tracer, which show no state."""
        return source is None or not (self.training or type(source) is not nn.Parameter or source.is_inference()
                                      or (torch.is_grad_enabled() and source.requires_grad))

    def train(self, mode: bool = True) -> 'Derives':
        self._kept.clear()
        return super().train(mode)

    def _load_from_state_dict(self, *args: Any) -> None:
        self._kept.clear()
        super()._load_from_state_dict(*args)

    def _apply(self, *args: Any, **kwargs: Any) -> 'Derives':  # .to(), .half(), ...
        self._kept.clear()
        return super()._apply(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:  # a copy computes its own
        return {**self.__dict__, '_kept': {}}


def _count_step(*_: Any) -> None:
    Derives.steps += 1


register_optimizer_step_post_hook(_count_step)
