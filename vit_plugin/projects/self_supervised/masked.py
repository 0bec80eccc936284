"""Encoders for masked image modeling, which see only some patches of each image.

Masked patches are made gray before the stem, and their tokens are dropped or replaced after it. The
first step keeps a CNN from seeing them. With a plain patch embedding it has no effect.
"""

from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arguments.fields import Rate
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.attention import Attention
from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.registry import MODELS


class MaskedVisionTransformer(VisionTransformer):
    """Base class of encoders that mask patches.

    Raises:
        ConfigError: if the patch size varies.
    """

    # Overrides attributes of VisionTransformer, which describes them.
    one_patch_size = True

    def gray_out(self, images: Tensor, mask: Tensor) -> Tensor:
        """Images (B, C, H, W) -> images that are gray where ``mask``, bool (B, h, w), is True.

        Raises:
            ConfigError: if the images are not of h x w full patches.
        """
        stride, grid = self.patch_embed.stride, tuple(mask.shape[1:])
        if tuple(images.shape[2:]) != (grid[0] * stride, grid[1] * stride):
            raise ConfigError(
                f'{type(self).__name__}: a mask of {" x ".join(map(str, grid))} patches of '
                f'{stride} pixels does not fit images of {images.shape[2]} x {images.shape[3]} '
                'pixels; change the mask or the size of the images.'
            )
        # The mask of patches becomes one of pixels, (B, 1, H, W).
        is_masked = mask.repeat_interleave(stride, 1).repeat_interleave(stride, 2)[:, None]
        return images.masked_fill(is_masked, 0.0)  # 0 is the mean of normalized images


@MODELS.register_module()
class MAEViT(MaskedVisionTransformer):
    """MAE's encoder (arXiv:2111.06377) for MMPretrain's ``MAE``: it computes only visible patches.

    On a CNN, the stem still computes the entire image, in which the masked patches are gray.

    Args:
        mask_ratio: fraction of the patches that are masked.
        **kwargs: see :class:`VisionTransformer`. There must be a class token and no other token
            before the patches, and no windows, relative or rotary positions, which need a complete
            grid.

    Raises:
        ConfigError: if nothing is masked or nothing visible, for other tokens before the patches,
            or for attention that needs a complete grid.
    """

    def __init__(self, mask_ratio: Rate = 0.75, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mask_ratio = mask_ratio
        num_visible = self.num_visible(self.position.grid)
        if not 0 < num_visible < self.position.grid[0] * self.position.grid[1]:
            raise ConfigError(
                f'MAEViT: mask_ratio={mask_ratio} of {self.position.grid[0]} x '
                f'{self.position.grid[1]} patches leaves {num_visible} visible; some must be '
                'hidden, and some visible.'
            )
        if self.prefix_tokens != ('cls_token',):
            raise ConfigError(
                "MAEViT: MMPretrain's decoder takes a class token and no other token before the "
                'patches; set with_cls_token=True, and leave out dist_token and reg_token of '
                'encoder.'
            )
        if any(type(block.attn) is not Attention for block in self.blocks):
            raise ConfigError(
                'MAEViT: windows, relative and rotary positions need all patches of the grid, and '
                'MAE computes only some; leave them out, or pre-train with SimMIM.'
            )

    def num_visible(self, grid: Grid) -> int:
        """The number of patches of a grid that are not masked."""
        return int(grid[0] * grid[1] * (1 - self.mask_ratio))

    def forward(self, images: Tensor, mask: bool | None = True) -> tuple[Tensor, ...]:
        """Images (B, C, H, W) -> visible tokens, mask and order, as MMPretrain's ``MAEViT``.

        Args:
            images: normalized images of the native size.
            mask: whether to mask patches. If not, the result is that of
                :class:`VisionTransformer`.

        Returns:
            The tokens (B, 1 + visible, C); the mask (B, h*w), 1.0 at masked patches and else 0.0;
            and ``ids_restore`` (B, h*w), the position of each patch in the shuffled order, which
            begins with the visible ones.
        """
        if not mask:
            return super().forward(images)
        grid = self.position.grid
        noise = torch.rand(images.shape[0], grid[0] * grid[1], device=images.device)
        ids_shuffle, num_visible = noise.argsort(dim=1), self.num_visible(grid)
        ids_restore = ids_shuffle.argsort(dim=1)
        masked = ids_restore >= num_visible  # (B, h*w)
        x, *_ = self.begin(self.gray_out(images, masked.unflatten(1, grid)))  # (B, 1 + h*w, C)
        visible = ids_shuffle[:, :num_visible, None].expand(-1, -1, x.shape[2])
        x = torch.cat((x[:, :1], x[:, 1:].gather(1, visible)), dim=1)  # (B, 1 + visible, C)
        return self.norm(self.blocks(x, grid)[-1]), masked.to(x.dtype), ids_restore


@MODELS.register_module()
class SimMIMViT(MaskedVisionTransformer):
    """SimMIM's encoder (arXiv:2111.09886) for MMPretrain's ``SimMIM``.

    A learned token replaces masked patches.

    Args:
        **kwargs: see :class:`VisionTransformer`. ``out_type`` is ``'featmap'``, which SimMIM's
            decoder takes.

    Attributes:
        mask_token: the learned token (1, 1, embed_dims).

    Raises:
        ConfigError: for another ``out_type``.
    """

    out_types: tuple[str, ...] = ('featmap',)  # the supported ones, the default first

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{'out_type': self.out_types[0], **kwargs})
        if self.out_type not in self.out_types:
            raise ConfigError(
                f'{type(self).__name__}: out_type={self.out_type!r} must be '
                f'{" or ".join(map(repr, self.out_types))}; leave it out.'
            )
        self.mask_token = nn.Parameter(torch.empty(1, 1, self.embed_dims))
        nn.init.normal_(self.mask_token, std=0.02)

    def forward(self, images: Tensor, mask: Tensor | None = None) -> tuple[Tensor, ...]:
        """Images (B, C, H, W) -> one map (B, C, h, w) for each of ``out_indices``.

        Args:
            images: normalized images.
            mask: 1 for each masked patch (B, h, w). Without it, the result is that of
                :class:`VisionTransformer`.
        """
        if mask is None:
            return super().forward(images)
        mask = mask.bool()
        x, grid, _ = self.patch_embed(self.gray_out(images, mask))
        x = torch.where(mask.flatten(1)[..., None], self.mask_token.to(x.dtype), x)
        return tuple(self.encode(x, grid))

    def no_weight_decay(self) -> set[str]:
        return {*super().no_weight_decay(), 'mask_token'}

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """See :meth:`VisionTransformer.get_layer_depth`. ``mask_token`` counts as ``cls_token``."""
        name = f'{prefix}cls_token' if param_name == f'{prefix}mask_token' else param_name
        return super().get_layer_depth(name, prefix)


@MODELS.register_module()
class IBOTViT(SimMIMViT):
    """iBOT's encoder (arXiv:2111.07832) for our ``DINO``. It masks patches like SimMIM's.

    Its outputs are the tokens of the patches (B, h*w, C) and the vector of the image (B, C).

    Args:
        **kwargs: see :class:`VisionTransformer`. ``out_type`` determines the vector: the
            ``'cls_token'`` or the mean of the patches, ``'avg_featmap'``.

    Raises:
        ConfigError: for another ``out_type``.
    """

    out_types = ('cls_token', 'avg_featmap')

    def encode(self, x: Tensor, grid: Grid) -> list[Tensor]:
        """Embedded patches (B, h*w, C) -> their output tokens, and the vector (B, C)."""
        *_, x = self.tokens(x, grid)
        return [x[:, self.num_prefix_tokens :], self.output(x, grid)]
