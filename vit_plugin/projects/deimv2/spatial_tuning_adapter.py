"""DEIMv2's backbone: a Vision Transformer and a thin parallel CNN (arXiv:2509.20787).

The CNN adds fine details, since a plain transformer has maps of one stride only.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.arguments.fields import NormConfig, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.registry import MODELS

STA_STRIDES = (8, 16, 32)


@MODELS.register_module()
class SpatialTuningAdapter(VisionTransformer):
    """A :class:`VisionTransformer` whose maps get details from a thin CNN, as in DEIMv2.

    The outputs of three blocks are resized to the maps of a CNN at strides 8, 16 and 32,
    concatenated with them, and projected. The transformer may be of any stride. It may be a hybrid,
    whose stem is a CNN; the maps of that stem may replace those of the thin CNN.

    Args:
        out_channels: channels of the three outputs.
        conv_inplane: channels of the thin CNN at stride 2 and, after pooling, 4. None: no thin CNN;
            each output uses the coarsest map of a hybrid's stem whose stride divides its own,
            averaged to its stride.
        adapter_norm_cfg: the norms of the CNN and of the projections.
        norms_last: whether the final norm is applied only to the output of the last block of the
            arch, as in transformers with ``apply_layernorm=False``.
        **kwargs: see :class:`VisionTransformer`, with up to three ``out_indices`` and without
            ``out_type``. The map of the last block is repeated if there are fewer.

    Shape: images (B, in_channels, H, W) -> maps (B, out_channels, ceil(H / s), ceil(W / s)) for
    s = 8, 16 and 32.

    Raises:
        ConfigError: for more ``out_indices``, another ``out_type``, or ``conv_inplane=None`` if the
            hybrid has no maps at fitting strides.
    """

    # Overrides attributes of LoadableBackbone, which describes them.
    added_parts = ('detail', 'fusions')

    def __init__(
        self,
        out_channels: PositiveInt = 256,
        conv_inplane: PositiveInt | None = 16,
        adapter_norm_cfg: NormConfig = dict(type='BN'),
        norms_last: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{'out_type': 'featmap', **kwargs})
        if len(self.out_indices) > len(STA_STRIDES) or self.out_type != 'featmap':
            raise ConfigError(
                f'SpatialTuningAdapter: out_indices={self.out_indices} must be three blocks at '
                f"most, such as (3, 7, 11), and out_type={self.out_type!r} must be 'featmap'."
            )
        if conv_inplane is None and len(self._stem_maps()) < len(STA_STRIDES):
            raise ConfigError(
                'SpatialTuningAdapter: conv_inplane=None takes the maps of a CNN with strides that '
                f'divide 8, and this stem has {self.patch_embed.feature_strides}; give a number, '
                'or an arch such as R50+B/16.'
            )
        self.out_channels, self.norms_last = out_channels, norms_last
        if conv_inplane is None:
            widths, self.detail = self._stem_widths(), nn.ModuleList()
        else:
            widths = [conv_inplane * factor for factor in (1, 2, 4, 4)]  # at strides 2, 8, 16, 32
            self.detail = nn.ModuleList(
                ConvNorm(inputs, outputs, 3, adapter_norm_cfg, stride=2)
                for inputs, outputs in pairwise([self.in_channels, *widths])
            )
        self.fusions = nn.ModuleList(
            ConvNorm(self.embed_dims + width, out_channels, 1, adapter_norm_cfg)
            for width in widths[-len(STA_STRIDES) :]
        )

    def _stem_maps(self) -> list[int]:
        """See :func:`fitting_stem_maps`."""
        return fitting_stem_maps(self.patch_embed.feature_strides)

    def _stem_widths(self) -> list[int]:
        """Channels of these maps."""
        return [self.patch_embed.feature_channels[i] for i in self._stem_maps()]

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels of each output."""
        return (self.out_channels,) * len(STA_STRIDES)

    @property
    def strides(self) -> tuple[int, ...]:
        """Pixels per element of each output map."""
        return STA_STRIDES

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> three maps, from the finest."""
        x, grid, cnn_maps = self.patch_embed(images)
        maps = [self.output(x, grid) for x in self.tokens(x, grid)]  # (B, C, h, w)
        maps += [maps[-1]] * (len(STA_STRIDES) - len(maps))
        details = self.details(images) if len(self.detail) else self._average_maps(cnn_maps, images)
        return tuple(
            fuse(torch.cat((_resized(x, detail), detail), dim=1))
            for fuse, x, detail in zip(self.fusions, maps, details, strict=True)
        )

    def final_norm(self, x: Tensor, block: int) -> Tensor:
        """See the base class."""
        return x if self.norms_last and block < self.num_layers - 1 else self.norm(x)

    def _average_maps(self, cnn_maps: Sequence[Tensor], images: Tensor) -> list[Tensor]:
        """Maps of a hybrid's stem (B, C_i, h_i, w_i) -> maps at strides 8, 16 and 32."""
        averaged = []
        for stride, i in zip(STA_STRIDES, self._stem_maps(), strict=True):
            ratio = stride // self.patch_embed.feature_strides[i]
            x = F.avg_pool2d(cnn_maps[i], ratio, ratio, ceil_mode=True)
            rows, columns = (-(-side // stride) for side in images.shape[2:])
            averaged.append(x[:, :, :rows, :columns])  # without the padding of the stem
        return averaged

    def details(self, images: Tensor) -> list[Tensor]:
        """Images (B, in_channels, H, W) -> maps of the thin CNN at strides 8, 16 and 32."""
        first, *others = self.detail
        # `expand` repeats gray images with one channel.
        x = F.max_pool2d(F.gelu(first(images.expand(-1, self.in_channels, -1, -1))), 3, 2, 1)
        maps = []
        for i, layer in enumerate(others):
            x = layer(F.gelu(x) if i else x)  # the first `x` was activated before the pooling
            maps.append(x)
        return maps


def fitting_stem_maps(stem_strides: Sequence[int]) -> list[int]:
    """For each output, the index of the coarsest stem map whose stride divides that of the output.

    Outputs without such a map are left out.

    Args:
        stem_strides: pixels per element of the stem's maps, from the finest.
    """
    fitting = [
        [i for i, stem_stride in enumerate(stem_strides) if stride % stem_stride == 0]
        for stride in STA_STRIDES
    ]
    return [indices[-1] for indices in fitting if indices]


def _resized(x: Tensor, like: Tensor) -> Tensor:
    """Maps in the size and dtype of others."""
    return F.interpolate(x, like.shape[2:], mode='bilinear', align_corners=False).to(like.dtype)
