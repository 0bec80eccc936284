"""The backbone of RF-DETR: a Vision Transformer with a class token in every window."""

from typing import Any

import torch
from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.outputs import to_map
from vit_plugin.models.layers.rotary import Rotary
from vit_plugin.models.layers.window import InWindows, num_windows
from vit_plugin.registry import MODELS


@MODELS.register_module()
class WindowedViT(VisionTransformer):
    """A :class:`VisionTransformer` with a class token per window, as in RF-DETR (arXiv:2511.09554).

    Each window has its own copy of the class token. In a block with windows, a copy attends within
    its window. In a global block, all copies and all patches attend to one another. Weights of a
    Vision Transformer with a class token fit, such as DINOv2's.

    Args:
        **kwargs: see :class:`VisionTransformer`. ``encoder`` must have a ``window``, and
            ``out_type`` must be ``'featmap'``, the default, or ``'pyramid'``.

    Raises:
        ConfigError: without windows, with another ``out_type``, with rotary positions, or with
            tokens other than the class token before the patches.
    """

    # Overrides attributes of VisionTransformer, which describes them.
    tokens_in_windows = True  # a window may contain tokens that are not patches

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{'out_type': 'featmap', **kwargs})
        window = next(
            (block.attn.window for block in self.blocks if isinstance(block.attn, InWindows)), None
        )
        if window is None:
            raise ConfigError(
                'WindowedViT: no block has windows; give encoder=dict(window=dict(number=..., '
                'global_blocks=...)), or take vit_plugin.VisionTransformer.'
            )
        if self.prefix_tokens != ('cls_token',) or isinstance(self.rope, Rotary):
            raise ConfigError(
                'WindowedViT: a window has a class token, but no other extra token and no '
                'rotary positions; set with_cls_token=True, and leave out dist_token, reg_token '
                'and rotary.'
            )
        if self.out_type not in ('featmap', 'pyramid'):
            raise ConfigError(
                f'WindowedViT: out_type={self.out_type!r} needs one class token, but every window '
                "has its own; take 'featmap' or 'pyramid'."
            )
        self.window = window

    def output(self, x: Tensor, grid: Grid) -> Tensor:
        """Class tokens and patches (B, windows + h*w, C) -> a map (B, C, h, w) of the patches."""
        return to_map(x, num_windows(grid, self.window.within(grid)), grid)

    def embed(self, x: Tensor, grid: Grid) -> Tensor:
        """Patches (B, h*w, C) -> class tokens and patches (B, windows + h*w, C) with positions."""
        tokens = super().embed(x, grid)
        copies = tokens[:, :1].expand(-1, num_windows(grid, self.window.within(grid)), -1)
        return torch.cat((copies, tokens[:, 1:]), dim=1)
