"""Products of the blocks in float8, through the library torchao."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import nn

from vit_plugin.arguments import checked
from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.models import VisionTransformer


@checked
@dataclass(frozen=True)
class Float8:
    """Training with float8 matrix products (arXiv:2209.05433). In a config: ``float8=dict(...)``.

    Weights, optimizer state and checkpoints stay as they are. Before each product, torchao rounds
    both factors to float8, forward and backward. It pays in large layers under bfloat16, compiled
    (``compile=dict(blocks=True)``).

    Attributes:
        recipe: torchao's name of how factors are scaled: by one value for each tensor, or for each
            row.
        min_width: the fewest input and output channels of a layer that is converted. The default
            takes L and larger.
        emulate: whether float32 computes what float8 would, without a GPU that has it. It is slow.
    """

    recipe: Literal['tensorwise', 'rowwise'] = 'tensorwise'
    min_width: PositiveInt = 1024
    emulate: bool = False

    def convert(self, model: nn.Module) -> int:
        """Convert the linear layers in the blocks of a model's Vision Transformers, in place.

        Returns:
            The number of converted layers.

        Raises:
            ConfigError: if no layer is large enough, or if this machine has no float8.
            MissingExtraError: if torchao is not installed.
        """
        with needed_by('float8'):
            from torchao.float8 import Float8LinearConfig, convert_to_float8_training
        if not self.emulate and (
            not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9)
        ):
            raise ConfigError(
                'float8 needs a GPU of compute capability 8.9 or higher; leave float8 out, or try '
                'it slowly with float8.emulate=True.'
            )
        chosen = {
            id(layer)
            for backbone in model.modules()
            if isinstance(backbone, VisionTransformer)
            for layer in backbone.blocks.modules()
            if self._fits(layer)
        }
        if not chosen:
            raise ConfigError(
                f'float8: {type(model).__name__} has no vit_plugin.VisionTransformer with layers '
                f'of {self.min_width} channels; leave float8 out, or give a smaller min_width.'
            )
        config = replace(
            Float8LinearConfig.from_recipe_name(self.recipe),
            emulate=self.emulate,
            # The backward multiplies along the tokens, such as 197.
            pad_inner_dim=True,
        )
        convert_to_float8_training(
            model, config=config, module_filter_fn=lambda layer, _: id(layer) in chosen
        )
        return len(chosen)

    def _fits(self, layer: nn.Module) -> bool:
        """True if a layer is large enough. The hardware multiplies in steps of 16 channels."""
        if type(layer) is not nn.Linear:
            return False
        widths = (layer.in_features, layer.out_features)
        return min(widths) >= self.min_width and not any(width % 16 for width in widths)
