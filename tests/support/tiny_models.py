"""Sizes of tiny models, and random weights for them."""

from typing import TypeVar

from torch import nn

Model = TypeVar('Model', bound=nn.Module)
TINY_SIZES = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
TINY = dict(TINY_SIZES, patch_size=8)
CENTRED = dict(type='none', rotary=dict(form='centred', planes='halves'))  # DINOv3's


def randomize(model: Model, std: float = 0.05) -> Model:
    """Random weights and statistics, since zeros and ones hide mistakes. None is close to zero in a
    vector, so that scales and variances pass something on.
    """
    for value in (*model.parameters(), *model.buffers()):
        if value.is_floating_point():
            nn.init.normal_(value, std=std) if value.ndim > 1 else nn.init.uniform_(value, 0.5, 1.5)
    return model
