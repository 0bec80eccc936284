"""PMT: segmentation from several depths of a frozen Vision Transformer (arXiv:2603.25398)."""

from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arch import parse_arch
from vit_plugin.arguments.fields import Depth, NormConfig, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.block import TransformerBlock
from vit_plugin.models.layers.block_cfg import BlockCfg
from vit_plugin.models.layers.encoder import Encoder
from vit_plugin.models.layers.numerics import build_map_norm, build_norm, get_numerics
from vit_plugin.models.layers.rotary import build_rotary
from vit_plugin.registry import MODELS

from .mask_queries import MaskQueries


class Lateral(nn.Module):
    """Adapter for the tokens of one depth: a norm, a residual MLP, and a scale per channel."""

    def __init__(self, embed_dims: int, norm_cfg: NormConfig) -> None:
        super().__init__()
        self.bn = build_map_norm(norm_cfg, embed_dims)
        self.projection = nn.Sequential(
            nn.Linear(embed_dims, embed_dims // 2),
            nn.GELU(),
            nn.Linear(embed_dims // 2, embed_dims),
        )
        self.scaler = nn.Parameter(torch.empty(embed_dims))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.scaler)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, C) -> tokens (B, N, C)."""
        # `bn` takes a map, here (B, C, N, 1).
        x = self.bn(x.mT[..., None])[..., 0].mT
        return (x + self.projection(x)) * self.scaler


class Decoder(nn.Module):
    """The modules of a PMT's decoder, which :meth:`PMT.forward` runs.

    The blocks, with rotary positions, are those of DINOv3.

    Args:
        backbone: the encoder, whose width, heads and number of depths the decoder shares.
        num_blocks, feedforward_channels, norm_cfg: see :class:`PMT`.
    """

    def __init__(
        self,
        backbone: VisionTransformer,
        num_blocks: int,
        feedforward_channels: int,
        norm_cfg: NormConfig,
    ) -> None:
        super().__init__()
        dims, num_heads = backbone.embed_dims, backbone.num_heads
        cfg = BlockCfg(
            embed_dims=dims,
            num_heads=num_heads,
            qkv_bias='qv',
            rotary_planes='halves',
            feedforward_channels=feedforward_channels,
            layer_scale_init_value=1.0,
            numerics=get_numerics(dict(base='timm', norm_cfg=dict(eps=1e-5))),
        )
        self.laterals = nn.ModuleList(Lateral(dims, norm_cfg) for _ in backbone.out_indices)
        self.rope = build_rotary(
            dict(form='centred', planes=cfg.rotary_planes, rescale=2.0),
            head_dims=dims // num_heads,
            num_heads=num_heads,
            num_layers=num_blocks,
            num_prefix_tokens=0,
        )
        blocks = [TransformerBlock(cfg) for _ in range(num_blocks)]
        self.blocks = Encoder(blocks, [num_blocks - 1], backbone.blocks.with_cp)
        self.norm = build_norm(cfg.numerics.norm_cfg, dims)


@MODELS.register_module()
class PMT(VisionTransformer):
    """A :class:`VisionTransformer`, frozen by default, with a decoder for classes and masks.

    The decoder adapts and sums the tokens of several depths. Its blocks process them together with
    queries, like the last blocks of an :class:`~vit_plugin.models.EoMT`. It takes the same heads.

    Args:
        num_classes: number of classes.
        num_queries: number of queries. The authors have 100 for semantic and 200 for panoptic and
            instance masks.
        num_blocks: number of blocks of the decoder.
        feedforward_channels: width of the MLP in these blocks. Default: 4 times the width of the
            tokens.
        norm_cfg: the norm of the tokens of each depth.
        **kwargs: see :class:`VisionTransformer`, without ``out_type``. By default, ``out_indices``
            are the last blocks of four equal groups, and ``frozen_stages`` is ``'all'``.

    Raises:
        ConfigError: for an ``out_type``, or if the patch size varies.
    """

    # Overrides attributes of VisionTransformer and LoadableBackbone, which describe them.
    one_patch_size = True  # the stride of the masks is a fraction of the patch size
    channels = ()  # the outputs are classes and masks
    added_parts = ('queries', 'decoder')
    added_classifiers = ('queries.class_head.',)

    def __init__(
        self,
        num_classes: PositiveInt,
        num_queries: PositiveInt = 100,
        num_blocks: Depth = 6,
        feedforward_channels: PositiveInt | None = None,
        norm_cfg: NormConfig = dict(type='SyncBN'),
        **kwargs: Any,
    ) -> None:
        if 'out_type' in kwargs:
            raise ConfigError(
                'PMT: out_type is not an option, since the outputs are classes and masks; '
                'leave it out.'
            )
        num_layers = parse_arch(kwargs.get('arch', 'B/16')).num_layers
        last_of_quarters = sorted({max(i * num_layers // 4, 1) - 1 for i in range(1, 5)})
        super().__init__(
            **{'frozen_stages': 'all', 'out_indices': last_of_quarters, **kwargs}, out_type='raw'
        )
        self.decoder = Decoder(
            self, num_blocks, feedforward_channels or 4 * self.embed_dims, norm_cfg
        )
        self.queries = MaskQueries(
            self.embed_dims, num_queries, num_classes, num_blocks, self.patch_embed.stride
        )

    def forward(self, images: Tensor) -> tuple[Any, ...]:
        """Images (B, in_channels, H, W) -> predictions, as in an EoMT.

        See ``EoMT.forward``.
        """
        depths, grid = self.features(images)
        decoder = self.decoder
        x = torch.stack(
            [lateral(depth) for lateral, depth in zip(decoder.laterals, depths, strict=True)]
        ).sum(0)
        rotations = decoder.rope(grid, x)
        # The queries enter at the first block.
        return self.queries.decode(
            decoder.blocks, x, grid, start=0, norm=decoder.norm, rotations=rotations
        )

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time, with the decoder's blocks."""
        return [*super().parts_to_shard(), *self.decoder.blocks]
