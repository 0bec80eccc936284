"""The one seam between pure and hybrid: what turns an image into tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch.nn.functional as F
from mmengine.model import BaseModule
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from ..layers.numerics import Numerics, build_activation, build_norm, get_numerics
from ..layers.std_conv import lecun_normal_


class Stem(BaseModule):
    """Image -> tokens. After the constructor nothing asks what kind of stem it is.

    A subclass says by arithmetic what its CNN's maps will be, and computes them in :meth:`features`;
    the embedding of the last map's patches is the same for all.

    Args:
        in_channels: channels of the image.
        embed_dims: width of the tokens.
        patch_size: side of the square patches of the last map (of the image where there is no CNN).
        numerics: see :func:`~vit_plugin.models.layers.numerics.get_numerics`.
        with_cp: recompute the CNN's blocks in the backward pass to save memory.
        norm_cfg: norm of the tokens after the projection; None for none, as in the papers.
        act_cfg: activation after that; None for none.
        bias: whether the projection has one; CLIP's has none.
        init_cfg: MMEngine's initialisation config.
        feature_strides, feature_channels: pixels per element, and channels, of each map that the subclass
            computes, the one that becomes tokens last.

    Attributes:
        stride: pixels per token along each side.
        num_depths: steps in depth from the image to the tokens, for layer-wise decay.

    Raises:
        ConfigError: for a patch size that is no positive whole number.
    """

    def __init__(self, in_channels: int, embed_dims: int, patch_size: int,
                 numerics: str | Mapping[str, Any] | Numerics = 'authors', with_cp: bool = False,
                 norm_cfg: Mapping[str, Any] | None = None, act_cfg: Mapping[str, Any] | None = None, bias: bool = True,
                 init_cfg: Mapping[str, Any] | None = None, feature_strides: Sequence[int] = (),
                 feature_channels: Sequence[int] = ()) -> None:
        super().__init__(init_cfg)
        if not isinstance(patch_size, int) or patch_size < 1:
            raise ConfigError(f'patch_embed: patch_size={patch_size!r} must be a positive whole number.')
        self.in_channels, self.embed_dims, self.patch_size = in_channels, embed_dims, patch_size
        self.numerics = get_numerics(numerics)
        self.with_cp = with_cp
        self.feature_strides, self.feature_channels = tuple(feature_strides), tuple(feature_channels)
        self.stride = (1, *self.feature_strides)[-1] * patch_size
        self.num_depths = 1
        self.proj = nn.Conv2d((in_channels, *self.feature_channels)[-1], embed_dims, patch_size, patch_size, bias=bias)
        self.norm = build_norm(norm_cfg, embed_dims) if norm_cfg else nn.Identity()
        self.act = build_activation(act_cfg) if act_cfg else nn.Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The authors' initialisation of the projection; the CNN's layers have their own."""
        lecun_normal_(self.proj.weight)
        if self.proj.bias is not None:
            nn.init.zeros_(self.proj.bias)

    def grid(self, image_size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns of tokens for an image (H, W): what does not fill a patch is padded."""
        h, w = (-(-size // self.stride) for size in image_size)
        return h, w

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, C, H, W) -> one map (B, C_i, ceil(H / s_i), ceil(W / s_i)) for each stride s_i."""
        return ()

    def layer_depth(self, name: str) -> int:
        """Depth of one of its parameters, from 0 at the image to ``num_depths - 1`` at the tokens."""
        return self.num_depths - 1

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[int, int], tuple[Tensor, ...]]:
        """Images (B, C, H, W) -> tokens (B, h*w, embed_dims), their grid (h, w), the CNN's maps.

        Raises:
            ConfigError: if an image is smaller than one patch.
        """
        self.check_image_size(tuple(images.shape[-2:]))
        features = self.features(images)
        x = (images, *features)[-1]
        right, bottom = -x.shape[-1] % self.patch_size, -x.shape[-2] % self.patch_size
        if right or bottom:
            x = F.pad(x, (0, right, 0, bottom))
        x = self.proj(x)  # (B, embed_dims, h, w)
        grid = (x.shape[-2], x.shape[-1])
        x = x.flatten(2).transpose(1, 2)  # (B, h*w, embed_dims)
        return self.act(self.norm(x)), grid, features

    def check_image_size(self, image_size: tuple[int, ...]) -> None:
        """Raise the ``ConfigError`` of :meth:`forward` for an image (H, W) that is too small."""
        if min(image_size) < self.stride:
            raise ConfigError(
                f'The image of {image_size[0]} x {image_size[1]} pixels is smaller than one patch of '
                f'{self.stride} x {self.stride}: resize the images in the pipeline, or choose an arch '
                'with a smaller patch.')
