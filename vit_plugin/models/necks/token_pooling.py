"""From the tokens of an image to its one feature vector."""

from collections.abc import Callable, Mapping
from typing import Any

from mmengine.model import BaseModule
from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from ..layers.attention_pool import AttentionPool

# Tokens (B, extra + N, C) and the number of extra ones -> (B, C).
POOLINGS: dict[str, Callable[[Tensor, int], Tensor]] = {
    'cls': lambda x, extra: x[:, 0],
    'avg': lambda x, extra: x[:, extra:].mean(dim=1),
    'gap': lambda x, extra: x.mean(dim=1),
    'max': lambda x, extra: x[:, extra:].amax(dim=1),
}


@MODELS.register_module()
class TokenPooling(BaseModule):
    """Pools the tokens of each of the backbone's outputs into one vector.

    Args:
        mode: ``'cls'`` takes the class token; ``'avg'`` and ``'max'`` pool the patches; ``'gap'``
            averages all tokens, as google-research/vision_transformer does; ``'map'`` pools all of them by attention
            (big_vision).
        num_extra_tokens: tokens before the patches in a ``raw`` output.
        in_channels: width of the tokens, for ``'map'``.
        map_cfg: further arguments of :class:`~vit_plugin.models.layers.AttentionPool` (``num_heads``, ...).
        init_cfg: MMEngine's initialisation config.
    Shape: each input (B, extra + N, C), or a feature map (B, C, h, w), which has no extra tokens -> (B, C).

    Raises:
        ConfigError: for an unknown mode, ``'cls'`` without a class token, or ``'map'`` without ``in_channels``.
    """

    def __init__(self, mode: str = 'avg', num_extra_tokens: int = 1, in_channels: int | None = None,
                 map_cfg: Mapping[str, Any] | None = None, init_cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(init_cfg)
        if mode not in (*POOLINGS, 'map'):
            raise ConfigError(f'Unknown mode {mode!r}; choose one of {", ".join(POOLINGS)}, map.')
        if mode == 'cls' and num_extra_tokens < 1:
            raise ConfigError("mode='cls' needs a class token, but num_extra_tokens=0; choose mode='avg'.")
        if mode == 'map' and in_channels is None:
            raise ConfigError("mode='map' needs in_channels, the width of the backbone's tokens.")
        self.mode, self.num_extra_tokens = mode, num_extra_tokens
        self.attn_pool = AttentionPool(in_channels, **(map_cfg or {})) if mode == 'map' else None

    def forward(self, feats: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(self._pool(feat) for feat in feats)

    def _pool(self, x: Tensor) -> Tensor:
        extra = self.num_extra_tokens
        if x.ndim == 4:
            if self.mode == 'cls':
                raise ConfigError("mode='cls' needs the backbone's out_type='raw', but got a feature map.")
            x, extra = x.flatten(2).transpose(1, 2), 0  # (B, h*w, C)
        elif x.ndim != 3:
            raise ConfigError(f"TokenPooling got {tuple(x.shape)}, pooled already: set the backbone's out_type to "
                              "'raw' or 'featmap', or leave out the neck.")
        return POOLINGS[self.mode](x, extra) if self.attn_pool is None else self.attn_pool(x)
