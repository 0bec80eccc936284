"""MMPretrain's Vision Transformers, as our backbone built from MMPretrain's own arguments.

An MMPretrain config needs one change: ``vit_plugin.MM`` before the name in ``type``. Its other
lines, and its checkpoints, need no change.
"""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from typing_extensions import Unpack

from vit_plugin.arch import SIZE_KEYS, apply_change
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.numerics import build_norm
from vit_plugin.registry import MODELS

from .mmpretrain_arguments import translate
from .mmpretrain_options import (
    ArchSizes,
    DeiT3Options,
    DistilledOptions,
    EVA02Options,
    MoCoV3Options,
    ViTOptions,
)

SizeRow = tuple[int, int, int, int]  # the values of SIZE_KEYS, in that order


def _with_short_names(sizes: Mapping[str, SizeRow]) -> dict[str, SizeRow]:
    """The sizes by their long and short names: ``'deit-small'`` and ``'deit-s'``."""
    return {**sizes, **{re.sub(r'(\w)\w*$', r'\1', name): row for name, row in sizes.items()}}


class TranslatedViT(VisionTransformer):
    """The base class of the backbones with MMPretrain's arguments.

    As in MMPretrain, only the last block's output is normed, and ``out_type='avg_featmap'`` norms
    it again after the average, by ``fc_norm``.

    Attributes:
        archs: the sizes of MMPretrain's archs, by their names.
        defaults: arguments whose defaults differ from those of MMPretrain's ``VisionTransformer``.
        fixed_arguments: arguments of our ``VisionTransformer`` for what is fixed in MMPretrain's
            class.

    Raises:
        ConfigError: if an argument has no translation. The message names it.
    """

    archs: Mapping[str, SizeRow]
    defaults: Mapping[str, Any] = {}
    fixed_arguments: Mapping[str, Any] = {}

    def __init__(self, arch: str | ArchSizes, **options: Any) -> None:
        super().__init__(**self.translated(arch, **options))
        self.fc_norm = None
        if self.out_type == 'avg_featmap':
            self.fc_norm = build_norm(self.numerics.norm_cfg, self.embed_dims)
            self.fc_norm.requires_grad_(self.frozen_stages < self.num_layers)

    def final_norm(self, x: Tensor, block: int) -> Tensor:
        return super().final_norm(x, block) if block == self.num_layers - 1 else x

    def output(self, x: Tensor, grid: Grid) -> Tensor | tuple[Tensor, ...]:
        out = super().output(x, grid)
        return out if self.fc_norm is None else self.fc_norm(out)

    @classmethod
    def translated(cls, arch: str | ArchSizes, **options: Any) -> dict[str, Any]:
        """MMPretrain's arguments as those of our :class:`VisionTransformer`.

        Raises:
            ConfigError: if an argument has no translation.
        """
        sizes: Any = arch
        if isinstance(arch, str):
            if arch.lower() not in cls.archs:
                raise ConfigError(
                    f'{cls.__name__}: arch={arch!r} is not one of {", ".join(cls.archs)}. For the '
                    "variants of this package, such as 'R50+B/16', take "
                    "type='vit_plugin.VisionTransformer'."
                )
            sizes = dict(zip(SIZE_KEYS, cls.archs[arch.lower()], strict=True))
        return apply_change(translate(sizes, {**cls.defaults, **options}), cls.fixed_arguments)


@MODELS.register_module()
class MMVisionTransformer(TranslatedViT):
    """MMPretrain's ``VisionTransformer``.

    Args:
        arch: one of MMPretrain's names, or a dict with its four keys.
        **options: MMPretrain's arguments.
    """

    archs = _with_short_names(
        {
            'small': (768, 8, 8, 2304),
            'base': (768, 12, 12, 3072),
            'large': (1024, 24, 16, 4096),
            'huge': (1280, 32, 16, 5120),
            'eva-giant': (1408, 40, 16, 6144),
            'deit-tiny': (192, 12, 3, 768),
            'deit-small': (384, 12, 6, 1536),
            'dinov2-small': (384, 12, 6, 1536),
            'deit-base': (768, 12, 12, 3072),
            'dinov2-giant': (1536, 40, 24, 6144),
        }
    )

    def __init__(self, arch: str | ArchSizes = 'base', **options: Unpack[ViTOptions]) -> None:
        super().__init__(arch, **options)


@MODELS.register_module()
class MMDistilledVisionTransformer(TranslatedViT):
    """MMPretrain's ``DistilledVisionTransformer`` (DeiT, arXiv:2012.12877).

    ``out_type='cls_token'`` returns a tuple for each output: the class token and the distillation
    token, (B, C) each.

    Args:
        arch, **options: see :class:`MMVisionTransformer`.
    """

    archs = MMVisionTransformer.archs
    fixed_arguments = dict(encoder=dict(dist_token=1))
    num_class_tokens = 2

    def __init__(
        self, arch: str | ArchSizes = 'deit-base', **options: Unpack[DistilledOptions]
    ) -> None:
        super().__init__(arch, **options)

    def output(self, x: Tensor, grid: Grid) -> Tensor | tuple[Tensor, ...]:
        return (x[:, 0], x[:, 1]) if self.out_type == 'cls_token' else super().output(x, grid)


@MODELS.register_module()
class MMMoCoV3ViT(TranslatedViT):
    """MMPretrain's ``MoCoV3ViT`` (arXiv:2104.02057) with frozen stages, as for linear probing.

    Args:
        arch, **options: see :class:`MMVisionTransformer`. ``stop_grad_conv1`` has no effect, since
            the stem is frozen, and neither has ``norm_eval``, since no norm is a BatchNorm.
    """

    archs = {
        **MMVisionTransformer.archs,
        **_with_short_names({'mocov3-small': (384, 12, 12, 1536)}),
    }

    def __init__(self, arch: str | ArchSizes = 'base', **options: Unpack[MoCoV3Options]) -> None:
        super().__init__(arch, **options)

    @classmethod
    def translated(cls, arch: str | ArchSizes, **options: Any) -> dict[str, Any]:
        frozen = options.get('frozen_stages', -1)
        if frozen < 0:
            raise ConfigError(
                'MMMoCoV3ViT: frozen_stages must be 0 or more. MoCo v3 is pre-trained with a fixed '
                "stem and fixed positions, which only MMPretrain's own MoCoV3ViT has."
            )
        # 0 is translated as for MMPretrain's other ViTs, where it freezes nothing. In MoCoV3ViT it
        # freezes the stem.
        return dict(super().translated(arch, **options), frozen_stages=frozen)


@MODELS.register_module()
class MMDeiT3(TranslatedViT):
    """MMPretrain's ``DeiT3`` (arXiv:2204.07118).

    It computes what the paper's code does. MMPretrain's own class applies ``ln1`` before the MLP,
    where ``ln2`` belongs.

    Args:
        arch, **options: see :class:`MMVisionTransformer`.
    """

    archs = _with_short_names(
        {
            'small': (384, 12, 6, 1536),
            'medium': (512, 12, 8, 2048),
            'base': (768, 12, 12, 3072),
            'large': (1024, 24, 16, 4096),
            'huge': (1280, 32, 16, 5120),
        }
    )
    defaults = dict(use_layer_scale=True)
    fixed_arguments = dict(pos_embed=dict(prefix_rows=False))

    def __init__(self, arch: str | ArchSizes = 'base', **options: Unpack[DeiT3Options]) -> None:
        super().__init__(arch, **options)


@MODELS.register_module()
class MMViTEVA02(TranslatedViT):
    """MMPretrain's ``ViTEVA02`` (arXiv:2303.11331).

    Its rotary positions are EVA-02's. MMPretrain's checkpoints hold the same table, but a model
    that MMPretrain builds from scratch, or for images of another size, has a different one.

    Args:
        arch, **options: see :class:`MMVisionTransformer`.
    """

    archs = _with_short_names(
        {
            'tiny': (192, 12, 3, 512),
            'small': (384, 12, 6, 1024),
            'base': (768, 12, 12, 2048),
            'large': (1024, 24, 16, 2730),
        }
    ) | {'ti': (192, 12, 3, 512)}
    defaults = dict(norm_cfg=dict(type='LN'))
    fixed_arguments = dict(
        encoder=dict(gated_mlp=True),
        numerics=dict(act_cfg=dict(type='SiLU')),
        pos_embed=dict(rotary=dict(form='index', native_grid=(16, 16))),
    )

    def __init__(self, arch: str | ArchSizes = 'tiny', **options: Unpack[EVA02Options]) -> None:
        super().__init__(arch, **options)
