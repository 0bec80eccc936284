"""ViT-Adapter: a pyramid of maps next to a plain or hybrid transformer (arXiv:2205.08534)."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vit_plugin.arguments.fields import (
    Blocks,
    Fraction,
    Indices,
    InitConfig,
    NormConfig,
    PositiveInt,
    Rate,
)
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.deformable_attention import MapLevel
from vit_plugin.models.layers.numerics import build_map_norm
from vit_plugin.models.layers.outputs import resample
from vit_plugin.models.layers.recompute import Recompute
from vit_plugin.models.loadable_module import LoadableModule
from vit_plugin.models.loading.loadable import load_weights
from vit_plugin.registry import MODELS
from vit_plugin.weights.report import Report

from .adapter_backbone import BackboneCfg, add_backbone_prefix, build_backbone
from .interaction import AttentionCfg, Interaction, block_groups, to_maps, to_pyramid
from .spatial_prior import SpatialPrior, init_conv

ADAPTER_STRIDES = (4, 8, 16, 32)
DEFORMABLE_HEAD_DIMS = 64  # channels of the tokens for each head of the deformable attention


@MODELS.register_module()
class ViTAdapter(LoadableModule):
    """A :class:`VisionTransformer` with a four-map pyramid for dense tasks (arXiv:2205.08534).

    A small CNN makes a first pyramid of the image. The blocks of the transformer run in groups.
    Before each group, an injector lets the patches attend to the pyramid. After each group, an
    extractor lets the pyramid attend to the patches. The transformer may be of any kind: pure or
    hybrid, with windows, with tokens before the patches, of any stride. Positions are compared in
    pixels, so strides and image sizes need not match.

    With ``inject=False`` and a backbone whose ``frozen_stages`` are all its blocks, the transformer
    runs as it was trained and keeps no activations. DINOv3 uses it in this way (arXiv:2508.10104,
    Section 6).

    Args:
        backbone: the config of the :class:`VisionTransformer`, without ``out_indices`` and
            ``out_type``. ``type`` may be left out. ``final_norm`` of its encoder defaults to
            ``not inject``: with injectors, the authors extract from tokens without a norm.
        interactions: number of groups of blocks, or the last block of each group.
        inject: whether there are injectors.
        num_extra_extractors: number of further extractors after the last group.
        add_tokens: ``'last'`` adds the last tokens to every map, as in the authors' detectors.
            ``'each'`` adds the tokens of the i-th of four groups to the i-th map, as in their
            segmentors and in DINOv3. ``'none'`` adds nothing.
        conv_inplane: channels of the CNN at stride 4.
        attention: the deformable attention, see :class:`AttentionCfg`.
        cffn_ratio: hidden width of the extractors' feed-forward networks, as a fraction of the
            tokens'. 0 leaves them out.
        init_values: initial scale of the injection. With 0, the transformer starts unchanged.
        out_indices: the maps to return, of strides 4, 8, 16 and 32. Only the first can be left out.
        norm_cfg: the norms of the CNN and of the maps.
        drop_path_rate: stochastic depth of the extractors. The backbone has its own.
        with_cp: activation checkpointing of injectors, extractors and, by default, the backbone's
            blocks.
        init_cfg: MMEngine's initialization config. ``dict(type='Pretrained', checkpoint=...)``
            loads an adapter with or without its backbone (DINOv3's has none). The backbone's own
            ``init_cfg`` loads only the backbone.

    Shape: images (B, in_channels, H, W) -> maps (B, embed_dims, ceil(H / s), ceil(W / s)) for each
    stride s.

    Attributes:
        in_channels: channels of the images.
        channels, strides: channels of each output, and its stride in pixels.

    Raises:
        ConfigError: if the groups do not divide the blocks, for ``add_tokens='each'`` without four
            groups, if heads do not divide a width, or if the backbone sets its outputs itself.
    """

    renamed_arguments = {
        'prior_channels': 'conv_inplane=...',
        'ffn_ratio': 'cffn_ratio=...',
        'init_value': 'init_values=...',
    }

    def __init__(
        self,
        backbone: BackboneCfg,
        interactions: PositiveInt | Indices = 4,
        inject: bool = True,
        num_extra_extractors: Blocks = 2,
        add_tokens: Literal['last', 'each', 'none'] = 'last',
        conv_inplane: PositiveInt = 64,
        attention: AttentionCfg | None = None,
        cffn_ratio: Fraction = 0.25,
        init_values: Fraction = 0.0,
        out_indices: Indices = (0, 1, 2, 3),
        norm_cfg: NormConfig = dict(type='SyncBN'),
        drop_path_rate: Rate = 0.0,
        with_cp: Recompute = False,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        self.out_indices, self.add_tokens = tuple(out_indices), add_tokens
        self.backbone = build_backbone(backbone, interactions, inject, with_cp)
        last_blocks = self.backbone.out_indices
        self.groups = block_groups(interactions, self.backbone.num_layers, last_blocks)
        self._check_outputs()
        self.in_channels, width = self.backbone.in_channels, self.backbone.embed_dims
        self.embed_dims = width
        self.strides = tuple(ADAPTER_STRIDES[i] for i in self.out_indices)
        self.channels = (width,) * len(self.strides)
        # The names of all parameters are the authors'.
        with_finest = 0 in self.out_indices
        self.spm = SpatialPrior(self.in_channels, conv_inplane, width, norm_cfg, with_finest)
        self.level_embed = nn.Parameter(torch.empty(len(ADAPTER_STRIDES) - 1, width))
        self.interactions = self._build_interactions(
            num_extra_extractors,
            attention or {},
            init_values=init_values if inject else None,
            with_cp=with_cp,
            cffn_ratio=cffn_ratio,
            drop_path_rate=drop_path_rate,
        )
        self.up = nn.ConvTranspose2d(width, width, 2, 2) if with_finest else None
        for i in self.out_indices:
            self.add_module(f'norm{i + 1}', build_map_norm(norm_cfg, width))
        self.register_load_state_dict_pre_hook(add_backbone_prefix)
        self.reset_parameters()

    def _check_outputs(self) -> None:
        if self.out_indices not in ((0, 1, 2, 3), (1, 2, 3)):
            raise ConfigError(
                f'ViTAdapter: out_indices={self.out_indices} must be (0, 1, 2, 3), the maps of '
                'strides 4, 8, 16 and 32, or (1, 2, 3); choose among these maps in the neck or '
                'head.'
            )
        if self.add_tokens == 'each' and len(self.groups) != len(ADAPTER_STRIDES):
            raise ConfigError(
                "ViTAdapter: add_tokens='each' adds the tokens of four groups to four maps, and "
                f"there are {len(self.groups)} groups; take interactions=4, or add_tokens='last'."
            )

    def _build_interactions(
        self, num_extra: int, attention: AttentionCfg, **options: Any
    ) -> nn.ModuleList:
        """Build one interaction per group of blocks. The last has the additional extractors."""
        options |= dict(num_levels=len(ADAPTER_STRIDES) - 1, value_ratio=0.5)
        options |= dict(num_heads=max(self.embed_dims // DEFORMABLE_HEAD_DIMS, 1)) | attention
        numbers = [1] * (len(self.groups) - 1) + [1 + num_extra]
        return nn.ModuleList(
            Interaction(self.embed_dims, num_extractors=number, **options) for number in numbers
        )

    def reset_parameters(self) -> None:
        nn.init.normal_(self.level_embed)
        if self.up is not None:
            init_conv(self.up)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        backbone = self.backbone
        x, grid, _, rotations = backbone.begin(images)  # (B, prefix + h*w, C)
        # Gray images (B, 1, H, W) are repeated, as in the backbone.
        prior = self.spm(images.expand(-1, self.in_channels, -1, -1))
        pyramid, levels = to_pyramid(prior[-3:], ADAPTER_STRIDES[-3:], self.level_embed)
        patch_level = MapLevel(grid, backbone.patch_embed.stride)
        patches = []
        for interaction, (start, stop) in zip(self.interactions, self.groups, strict=True):
            x = interaction.inject(x, patch_level, pyramid, levels)
            x = backbone.blocks.run_blocks(x, grid, start, stop, position_inputs=rotations)
            patches.append(backbone.norm(x)[:, backbone.num_prefix_tokens :])  # (B, h*w, C)
            pyramid = interaction.extract(pyramid, levels, patches[-1], patch_level)
        maps = to_maps(pyramid, levels)
        if self.up is not None:
            # Sides are rounded up, so the upsampled map may have one row or column too many.
            finest = prior[0] + self.up(maps[0])[:, :, : prior[0].shape[2], : prior[0].shape[3]]
            maps = [finest, *maps]
        maps = self._with_tokens(maps, patches, patch_level)
        norms = (getattr(self, f'norm{i + 1}') for i in self.out_indices)
        return tuple(norm(x) for norm, x in zip(norms, maps, strict=True))

    def _with_tokens(
        self, maps: list[Tensor], patches: Sequence[Tensor], patch_level: MapLevel
    ) -> list[Tensor]:
        """The maps plus the patches (B, h*w, C) of the groups, see ``add_tokens``."""
        if self.add_tokens == 'none':
            return maps
        is_each = self.add_tokens == 'each'
        tokens = [to_maps(x, [patch_level])[0] for x in (patches if is_each else patches[-1:])]
        added = []
        for i, x in zip(self.out_indices, maps, strict=True):
            patches_of_group = tokens[i if is_each else -1]
            added.append(
                x + resample(patches_of_group, patch_level.stride, ADAPTER_STRIDES[i], x.shape)
            )
        return added

    def no_weight_decay(self) -> set[str]:
        """Names of the parameters without weight decay: the backbone's and the level embeddings."""
        return {'level_embed', *(f'backbone.{name}' for name in self.backbone.no_weight_decay())}

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depths as in :meth:`VisionTransformer.get_layer_depth`; all other parameters are last."""
        return self.backbone.get_layer_depth(param_name, f'{prefix}backbone.')

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time. The backbone has the same method."""
        return [
            part
            for interaction in self.interactions
            for part in (interaction.injector, interaction.extractor, *interaction.extra_extractors)
            if part is not None
        ]

    def load(
        self, source: Any, skip: Sequence[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Report:
        """See :meth:`VisionTransformer.load`. A checkpoint may hold only the adapter."""
        return load_weights(self, source, skip, source_grid or self.backbone.position.source_grid)
