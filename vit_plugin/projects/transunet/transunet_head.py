"""TransUNet's decoder as a decode head of MMSegmentation."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import TypedDict, Unpack

from vit_plugin.arguments.fields import (
    InitConfig,
    NormConfig,
    PositiveInt,
    PositiveInts,
    Rate,
)
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.registry import MODELS

with needed_by('TransUNetHead'):
    make_importable()
    from mmseg.models.decode_heads.decode_head import BaseDecodeHead

DecoderWidths = Annotated[Sequence[PositiveInt], Field(min_length=1, max_length=6)]
TRANSUNET_LOSSES = (
    dict(type='mmseg.CrossEntropyLoss', loss_weight=0.5, avg_non_ignore=True),
    dict(type='vit_plugin.SoftDiceLoss', loss_weight=0.5),
)


class DecodeOptions(TypedDict, total=False):
    """Arguments of MMSegmentation's ``BaseDecodeHead``."""

    out_channels: PositiveInt | None
    threshold: float | None
    dropout_ratio: Rate
    loss_decode: Any
    ignore_index: int
    sampler: Any


class UpBlock(nn.Module):
    """Upsample by two, concatenate the CNN's map of that size, and apply two convolutions.

    If the CNN's map is smaller, since the image does not fill the last row or column of tokens, the
    upsampled map is cropped.

    Shape: (B, C_in, h, w) and (B, C_skip, H, W) -> (B, C_out, H, W). Without a map, H = 2h and W =
    2w.
    """

    def __init__(
        self, in_channels: int, skip_channels: int, out_channels: int, norm_cfg: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.conv1 = ConvNorm(in_channels + skip_channels, out_channels, 3, norm_cfg, 'ReLU')
        self.conv2 = ConvNorm(out_channels, out_channels, 3, norm_cfg, 'ReLU')

    def forward(self, x: Tensor, skip: Tensor | None, align_corners: bool) -> Tensor:
        x = F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=align_corners)
        if skip is not None:
            x = torch.cat((x.narrow(2, 0, skip.shape[2]).narrow(3, 0, skip.shape[3]), skip), dim=1)
        return self.conv2(self.conv1(x))


@MODELS.register_module()
class TransUNetHead(BaseDecodeHead):
    """The cascaded upsampler of TransUNet (arXiv:2102.04306, Section 3.2).

    A convolution of the tokens' map is followed by blocks that double its size. Each block also
    takes the CNN's map of the new size, if there is one. With ``R50+B/16``,
    ``out_type='pyramid'`` and ``patch_embed=dict(with_root=True)`` these are the maps of strides 2,
    4 and 8. A pure ViT has no such maps.

    Args:
        in_channels: channels of the outputs to use. The last one is the map of the tokens.
        strides: their strides in pixels, as in the backbone's ``strides``.
        num_classes: number of classes.
        in_index: indices of the outputs to use. Default: the first ones, one for each of
            ``in_channels``.
        hidden_channels: channels of the first convolution, of the tokens.
        decoder_channels: channels of each block. With patches of 16 pixels, four blocks reach the
            size of the image. Otherwise MMSegmentation resizes the result.
        norm_cfg: norm of the convolutions, one of
            :data:`~vit_plugin.models.layers.numerics.MAP_NORMS`.
        align_corners: how maps are resized; True in the authors' code.
        init_cfg: MMEngine's initialization config.
        **kwargs: arguments of MMSegmentation's ``BaseDecodeHead``. By default, ``loss_decode`` is
            the authors': half cross entropy, half Dice, over pixels that are not ignored.

    Raises:
        ConfigError: if there are not as many strides as channels, or if a map has a stride that no
            block has. Also in the forward, if the maps are not of these strides.
    """

    def __init__(
        self,
        in_channels: PositiveInt | PositiveInts,
        strides: PositiveInt | PositiveInts,
        num_classes: PositiveInt,
        in_index: int | Sequence[int] | None = None,
        hidden_channels: PositiveInt = 512,
        decoder_channels: DecoderWidths = (256, 128, 64, 16),
        norm_cfg: NormConfig = dict(type='BN'),
        align_corners: bool = True,
        init_cfg: InitConfig = None,
        **kwargs: Unpack[DecodeOptions],
    ) -> None:
        widths, map_strides = _as_list(in_channels), _as_list(strides)
        super().__init__(
            widths,
            decoder_channels[-1],
            num_classes=num_classes,
            in_index=list(range(len(widths))) if in_index is None else _as_list(in_index),
            input_transform='multiple_select',
            norm_cfg=norm_cfg,
            align_corners=align_corners,
            init_cfg=init_cfg,
            **{'dropout_ratio': 0.0, 'loss_decode': TRANSUNET_LOSSES, **kwargs},
        )
        self.strides = map_strides
        self.skips = _skip_indices(map_strides, len(widths), len(decoder_channels))
        self.conv_more = ConvNorm(widths[-1], hidden_channels, 3, norm_cfg, 'ReLU')
        self.blocks = nn.ModuleList(
            UpBlock(inputs, 0 if skip is None else widths[skip], outputs, norm_cfg)
            for skip, (inputs, outputs) in zip(
                self.skips, pairwise((hidden_channels, *decoder_channels)), strict=True
            )
        )
        self.conv_seg = nn.Conv2d(decoder_channels[-1], self.out_channels, 3, padding=1)

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        """The backbone's maps -> logits (B, num_classes, H, W)."""
        maps = self._transform_inputs(inputs)
        self._check_sizes([tuple(level.shape[-2:]) for level in maps])
        x = self.conv_more(maps[-1])  # (B, hidden_channels, h, w)
        for block, skip in zip(self.blocks, self.skips, strict=True):
            x = block(x, None if skip is None else maps[skip], self.align_corners)
        return self.cls_seg(x)

    def predict_by_feat(self, seg_logits: Tensor, batch_img_metas: Sequence[Mapping]) -> Tensor:
        """Logits at the size of the images, as in MMSegmentation.

        MMSegmentation's own resize compares sizes to warn about some. In an exported graph that
        would turn sizes into constants.
        """
        meta = batch_img_metas[0]
        # In sliding inference, MMSegmentation sets the shape of a window from its tensor.
        is_window = isinstance(meta['img_shape'], torch.Size)
        size = meta['img_shape'] if is_window else meta.get('pad_shape', meta['img_shape'])
        return F.interpolate(
            seg_logits, tuple(size[:2]), mode='bilinear', align_corners=self.align_corners
        )

    def _check_sizes(self, sizes: Sequence[tuple[int, int]]) -> None:
        """Check that the tokens cover each map, and extend beyond it by less than a token."""
        token_stride = self.strides[-1]
        if any(isinstance(side, torch.SymInt) for side in sizes[-1]):
            return  # sizes are dynamic in a graph
        for size, stride in zip(sizes, self.strides, strict=True):
            for side_of_map, num_tokens in zip(size, sizes[-1], strict=True):
                excess = num_tokens * token_stride // stride - side_of_map
                if not 0 <= excess < token_stride / stride:
                    raise ConfigError(
                        f'TransUNetHead: maps of the sizes {sizes} do not have the strides '
                        f'{self.strides}; give the strides of the backbone, and images whose sides '
                        f'are multiples of {token_stride} if its patches crop.'
                    )


def _as_list(value: int | Sequence[int]) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _skip_indices(strides: Sequence[int], num_maps: int, num_blocks: int) -> list[int | None]:
    """For each block, the index of the map with its stride, or None.

    Raises:
        ConfigError: if there are not as many strides as maps, or if no block, or no single map, has
            the stride of a map.
    """
    if len(strides) != num_maps:
        raise ConfigError(
            f'TransUNetHead: strides has {len(strides)} values, but in_channels has {num_maps}; '
            'give one of each for every map, as in the strides of the backbone.'
        )
    *skips, token_stride = strides
    block_strides = [token_stride / 2 ** (i + 1) for i in range(num_blocks)]
    wrong = [stride for stride in skips if stride not in block_strides or skips.count(stride) > 1]
    if wrong:
        raise ConfigError(
            f'TransUNetHead: no block takes a map of stride {wrong[0]}, or two maps have it: the '
            f'blocks make maps of the strides {", ".join(f"{s:g}" for s in block_strides)} from '
            f'tokens of stride {token_stride}; leave it out of in_channels, strides and in_index.'
        )
    return [skips.index(stride) if stride in skips else None for stride in block_strides]
