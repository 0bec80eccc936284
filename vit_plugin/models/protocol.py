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

        Parameters outside the backbone, whose names lack ``prefix``, have the last depth.
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
        """The modules to wrap with ``fully_shard``, each the unit of one all-gather.

        The forward calls each as a whole. A ``ModuleList`` stands for its children.
        """


@runtime_checkable
class HasFrozenModels(Protocol):
    """Uses frozen models that it does not register, so they are not in its parameters or state."""

    def frozen_models(self) -> list[nn.Module]:
        """The frozen models. Each is called as a whole within the forward."""


@runtime_checkable
class HasCopies(Protocol):
    """Keeps copies of trained weights, such as a teacher that is a moving average."""

    def copy_again(self) -> None:
        """Copy the trained modules again, after LoRA has replaced layers with adapted ones."""


@runtime_checkable
class HasChannels(Protocol):
    """States the channels of its outputs, as a distiller needs them of a backbone."""

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of each output. Empty if the outputs are classes and masks, as in EoMT."""


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


def modules_to_shard(model: nn.Module) -> list[nn.Module]:
    """The modules that each :class:`Shardable` in a model names, if they have parameters."""
    shardable = [module for module in model.modules() if isinstance(module, Shardable)]
    parts = [part for module in shardable for part in module.parts_to_shard()]
    return [module for part in parts for module in _called_modules(part)]


def innermost(model: nn.Module, kind: type) -> dict[str, Any]:
    """The modules of a class or protocol that contain no others of it.

    Returns them by the prefix of their parameters' names, such as ``'backbone.'``.
    """
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


def _called_modules(part: nn.Module) -> Iterator[nn.Module]:
    """The module itself, or the children of a ``ModuleList``, if they have parameters.

    ``fully_shard`` gathers parameters when a module is called, and a ``ModuleList`` is not called.
    """
    if type(part).forward is nn.Module.forward:  # a list has no forward
        for child in part.children():
            yield from _called_modules(child)
    elif next(part.parameters(), None) is not None:
        yield part
