"""Protocols between a backbone and the tools around it.

Any module with these methods is accepted, whatever its class. A backbone of another package may
have some of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import nn

from vit_plugin.weights.report import Report


@runtime_checkable
class HasLayerDepths(Protocol):
    """Supports layer-wise learning rate decay."""

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """A parameter's depth, 0 next to the image, and the number of depths.

        Parameters outside the backbone have the last depth.
        """


@runtime_checkable
class HasNoWeightDecay(Protocol):
    """Names parameters without weight decay, besides norms and biases."""

    def no_weight_decay(self) -> set[str]:
        """Names of these parameters within the module."""


@runtime_checkable
class Shardable(Protocol):
    """Supports sharding."""

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that are gathered one at a time.

        Each is called as a whole, or is a list of such modules, which has no forward.
        """


@runtime_checkable
class HasFrozenModels(Protocol):
    """Uses models that are not submodules: without parameters, state or gradients here."""

    def frozen_models(self) -> list[nn.Module]:
        """The frozen models. Each is called as a whole within the forward."""


@runtime_checkable
class HasCopies(Protocol):
    """Keeps copies of trained weights, such as a teacher that is a moving average."""

    def copy_again(self) -> None:
        """Renew the copies, since other parameters, such as adapters, are trained."""


@runtime_checkable
class HasChannels(Protocol):
    """Can be a teacher for another model."""

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of each output. Empty if the outputs are classes and masks."""


@runtime_checkable
class HasStrides(HasChannels, Protocol):
    """States the strides of its outputs, for checks before anything is loaded."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Pixels per element of each output map."""


@runtime_checkable
class Backbone(HasLayerDepths, HasNoWeightDecay, Shardable, HasStrides, Protocol):
    """A backbone of ours: ``forward`` maps images (B, in_channels, H, W) to a tuple of outputs."""

    def load(
        self, source: Any, skip: Sequence[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Report:
        """Load weights, see :func:`~vit_plugin.models.load_weights`."""

    @property
    def in_channels(self) -> int:
        """Channels of the images."""


def frozen_models(model: nn.Module) -> list[nn.Module]:
    """The models that the modules of a model use, see :class:`HasFrozenModels`."""
    users = [module for module in model.modules() if isinstance(module, HasFrozenModels)]
    return [frozen for user in users for frozen in user.frozen_models()]


def named_parts(model: nn.Module) -> list[nn.Module]:
    """The modules that :class:`Shardable` modules of a model name, if they have parameters."""
    tell = [module for module in model.modules() if isinstance(module, Shardable)]
    return [called for module in tell for part in module.parts_to_shard() for called in _of(part)]


def innermost(model: nn.Module, kind: type) -> dict[str, Any]:
    """The modules of a kind, by the prefix of their names; only the innermost of nested ones."""
    modules = {
        f'{name}.' if name else '': module
        for name, module in model.named_modules()
        if isinstance(module, kind)
    }
    return {
        prefix: module
        for prefix, module in modules.items()
        if not any(other != prefix and other.startswith(prefix) for other in modules)
    }


def _of(part: nn.Module) -> Iterator[nn.Module]:
    """A module, or the modules of a list."""
    if type(part).forward is nn.Module.forward:  # without its own forward
        for child in part.children():
            yield from _of(child)
    elif any(True for _ in part.parameters()):
        yield part
