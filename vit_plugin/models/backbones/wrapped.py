"""The base class of backbones that wrap a model of another library (timm, transformers)."""

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from mmengine.logging import print_log
from torch import Tensor
from typing_extensions import Self

from vit_plugin.errors import ConfigError

from ..layers.map_sizes import find_size_mismatch
from ..loadable_module import LoadableModule


class WrappedBackbone(LoadableModule):
    """A backbone computed by another library's module, whose frozen parts stay in eval mode.

    Attributes:
        library: the library's name, as in ``vit-plugin convert --to timm``.
        frozen: the names of the modules that are fully frozen.
        in_channels: channels of the images.
        channels: channels of each output.
        strides: pixels per element of each output map, as stated or measured.
        num_layers: number of possible outputs: blocks of an encoder of one width, or stages.
    """

    library: ClassVar[str]
    frozen: tuple[str, ...] = ()
    in_channels: int
    channels: tuple[int, ...]
    strides: tuple[int, ...]
    num_layers: int
    out_type: str

    def vector_and_map(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        """Images (B, in_channels, H, W) -> the vector (B, C) and the map (B, C', h, w) it pools.

        The vector is that of ``out_type='pooled'``. The map is None if the library pools no map.
        """
        raise NotImplementedError

    def with_classifier(
        self, weight: Tensor, bias: Tensor
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The library's own linear classifier: its config, and its weights by the library's names.

        Args:
            weight, bias: the linear layer (num_classes, C), (num_classes,).

        Raises:
            ConfigError: if the library has no such classifier.
        """
        raise NotImplementedError

    def recompute(self, with_cp: bool) -> None:
        """Turn activation checkpointing on or off.

        Raises:
            ConfigError: if the library does not support that for this model.
        """
        raise NotImplementedError

    @property
    def embed_dims(self) -> int:
        """Channels of the last output."""
        return self.channels[-1]

    def train(self, mode: bool = True) -> Self:
        """Set the training mode. Frozen parts stay in eval mode. Returns the model."""
        super().train(mode)
        for name in self.frozen:
            self.get_submodule(name).eval()
        return self

    def check_out_indices(
        self, out_indices: int | Sequence[int], num_outputs: int, description: str
    ) -> set[int]:
        """Check the indices of outputs, and return them counted from 0.

        Args:
            out_indices: their indices. Negative ones count from the last.
            num_outputs: number of outputs.
            description: a clause on their number for the message, such as ``'resnet50 has 5
                features'``.

        Raises:
            ConfigError: if an index is out of range.
        """
        indices = [out_indices] if isinstance(out_indices, int) else out_indices
        if not all(-num_outputs <= index < num_outputs for index in indices):
            raise ConfigError(
                f'{type(self).__name__}: out_indices={out_indices} is out of range: '
                f'{description}, {-num_outputs} to {num_outputs - 1}.'
            )
        return {index % num_outputs for index in indices}

    def warn_of_other_strides(self, model_name: str) -> None:
        """Log a warning if a map of the model has another size than its stride states."""
        if self.out_type == 'pooled':
            return
        if mismatch := find_size_mismatch(self, self.strides, self.in_channels):
            print_log(
                f'{type(self).__name__} {model_name} returns {mismatch}: take another model for '
                'boxes and masks.',
                'current',
                logging.WARNING,
            )
