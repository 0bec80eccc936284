"""Pool the tokens of an image to one feature vector."""

from collections.abc import Callable
from typing import Literal

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arch import num_heads_of_width
from vit_plugin.arguments.fields import Count, InitConfig, NormConfig, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.attention_pool import AttentionPool
from ..layers.numerics import AnyNumerics, build_norm
from ..loading.hooks import keep_shards

# Tokens (B, prefix + N, C) and the number of tokens before the patches -> (B, C).
POOLINGS: dict[str, Callable[[Tensor, int | None], Tensor]] = {
    'cls': lambda x, prefix: x[:, 0],
    'avg': lambda x, prefix: x[:, prefix:].mean(dim=1),
    'gap': lambda x, prefix: x.mean(dim=1),
    'prefix': lambda x, prefix: x[:, :prefix].mean(dim=1),
    'cls_avg': lambda x, prefix: torch.cat((x[:, 0], x[:, prefix:].mean(dim=1)), dim=1),
}
CLASS_TOKEN_MODES = ('cls', 'cls_avg', 'prefix')  # modes that need a class token
COUNTED_MODES = ('avg', 'cls_avg', 'prefix')  # modes that need the number of these tokens


class MapOptions(TypedDict, total=False):
    """Arguments of :class:`~vit_plugin.models.layers.AttentionPool`, for the mode ``'map'``."""

    num_heads: PositiveInt
    feedforward_channels: Count | None
    numerics: AnyNumerics
    query_proj: bool
    qkv_bias: bool


@MODELS.register_module()
class TokenPooling(BaseModule):
    """Pools the tokens of each output of the backbone to one vector.

    Args:
        mode: ``'cls'`` returns the class token. ``'avg'`` averages the patches. ``'gap'`` averages
            all tokens, as google-research/vision_transformer does, and ``'prefix'`` those before
            the patches, as Pixio does. ``'cls_avg'`` joins the class token and the average of the
            patches, as DINOv2's classifiers do. ``'map'`` (multi-head attention pooling) pools all
            tokens by attention, as big_vision does.
        num_prefix_tokens: number of tokens before the patches in a ``raw`` output. Our tools set it
            and compare it with the backbone. Elsewhere ``'avg'``, ``'cls_avg'`` and ``'prefix'``
            need it for tokens.
        in_channels: width of the tokens, for ``'map'``.
        map_cfg: further arguments of :class:`~vit_plugin.models.layers.AttentionPool`. The default
            of ``num_heads`` is that of the encoder with the same width in
            :data:`vit_plugin.arch.SIZES`.
        norm_cfg: norm of the pooled vector, such as ``dict(type='LN', eps=1e-6)``. It needs
            ``in_channels``. timm's models that average patches have it instead of the backbone's
            final norm.
        init_cfg: MMEngine's initialization config.

    Shape: tokens (B, prefix + N, C) or a feature map (B, C, h, w) -> (B, C), for each input; (B, 2
        * C) in the mode ``'cls_avg'``.

    Raises:
        ConfigError: if ``'cls'``, ``'cls_avg'`` or ``'prefix'`` has no class token; if ``'map'`` or
            ``norm_cfg`` lacks ``in_channels``; if ``map_cfg`` is given for another mode, or lacks
            ``num_heads`` for a width outside the table. In the forward, if the input does not have
            the tokens that the mode needs, or if their number is unknown.
    """

    def __init__(
        self,
        mode: Literal['cls', 'avg', 'gap', 'prefix', 'cls_avg', 'map'] = 'avg',
        num_prefix_tokens: Count | None = None,
        in_channels: PositiveInt | None = None,
        map_cfg: MapOptions | None = None,
        norm_cfg: NormConfig | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        if mode in CLASS_TOKEN_MODES and num_prefix_tokens == 0:
            raise ConfigError(
                f'TokenPooling: mode={mode!r} needs a class token, but num_prefix_tokens=0; choose '
                "mode='avg'."
            )
        if in_channels is None and (mode == 'map' or norm_cfg):
            raise ConfigError(
                "TokenPooling: mode='map' or a norm_cfg needs in_channels, the width of the "
                "backbone's tokens."
            )
        if mode != 'map' and map_cfg:
            raise ConfigError(
                f"TokenPooling: map_cfg is for mode='map', but this is mode={mode!r}; leave it out."
            )
        self.mode, self.num_prefix_tokens = mode, num_prefix_tokens
        width = in_channels or 0  # None is possible only where the width is not used
        self.attn_pool = (
            self._build_attention_pool(width, dict(map_cfg or {})) if mode == 'map' else None
        )
        pooled_width = 2 * width if mode == 'cls_avg' else width
        self.norm = build_norm(norm_cfg, pooled_width) if norm_cfg else nn.Identity()
        self.register_load_state_dict_pre_hook(keep_shards)

    @staticmethod
    def _build_attention_pool(in_channels: int, map_cfg: dict) -> AttentionPool:
        if 'num_heads' not in map_cfg:
            map_cfg['num_heads'] = num_heads_of_width(in_channels)
        if map_cfg['num_heads'] is None:
            raise ConfigError(
                f"TokenPooling: mode='map' of in_channels={in_channels} needs the number of "
                'heads, which the table of variants lacks for this width; give '
                'map_cfg=dict(num_heads=...).'
            )
        return AttentionPool(in_channels, **map_cfg)

    def forward(self, feats: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(self.norm(self._pool(feat)) for feat in feats)

    def _pool(self, x: Tensor) -> Tensor:
        """Tokens (B, prefix + N, C) or a map (B, C, h, w) -> the vector, before the norm."""
        prefix = self.num_prefix_tokens
        if x.ndim == 4:
            if self.mode in CLASS_TOKEN_MODES:
                raise ConfigError(
                    f"TokenPooling: mode={self.mode!r} needs the backbone's out_type='raw', but "
                    'got a feature map.'
                )
            x, prefix = x.flatten(2).transpose(1, 2), 0  # (B, h*w, C), without prefix tokens
        elif x.ndim != 3:
            raise ConfigError(
                f"TokenPooling got {tuple(x.shape)}, pooled already: set the backbone's out_type "
                "to 'raw' or 'featmap', or leave out the neck."
            )
        if self.mode in COUNTED_MODES and prefix is None:
            raise ConfigError(
                f'TokenPooling: mode={self.mode!r} of raw tokens needs num_prefix_tokens, how many '
                "of them come before the patches: give the backbone's num_prefix_tokens, or set "
                "its out_type='featmap'."
            )
        if self.mode in COUNTED_MODES and x.shape[1] <= (prefix or 0):
            raise ConfigError(
                f'TokenPooling: mode={self.mode!r} leaves out num_prefix_tokens={prefix} tokens, '
                f'but there are only {x.shape[1]}; set it to the num_prefix_tokens of the backbone.'
            )
        return POOLINGS[self.mode](x, prefix) if self.attn_pool is None else self.attn_pool(x)
