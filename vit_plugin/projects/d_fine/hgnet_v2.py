"""HGNetV2, the CNN of D-FINE and of the small DEIMv2, from timm's stem and stages."""

from collections.abc import Sequence
from typing import Any

from timm.models.hgnet import HighPerfGpuStage, StemV2
from torch import Tensor, nn

from vit_plugin.arguments.fields import Indices, InitConfig, PositiveInt
from vit_plugin.errors import ConfigError, naming
from vit_plugin.models.loadable_module import LoadableModule
from vit_plugin.models.timm_weights import fit_timm
from vit_plugin.registry import MODELS
from vit_plugin.weights.opening import Source, read_source
from vit_plugin.weights.report import Report

STEM_STRIDE = 4
Stage = Sequence[int | bool]
# Channels of the stem, then for each stage: input, inner and output channels, blocks, whether it
# halves the map, whether convolutions are depthwise, kernel size, layers per block. From D-FINE.
ARCHS: dict[str, tuple[Sequence[int], Sequence[Stage]]] = {
    'B0': (
        (16, 16),
        (
            (16, 16, 64, 1, False, False, 3, 3),
            (64, 32, 256, 1, True, False, 3, 3),
            (256, 64, 512, 2, True, True, 5, 3),
            (512, 128, 1024, 1, True, True, 5, 3),
        ),
    ),
    'B2': (
        (24, 32),
        (
            (32, 32, 96, 1, False, False, 3, 4),
            (96, 64, 384, 1, True, False, 3, 4),
            (384, 128, 768, 3, True, True, 5, 4),
            (768, 256, 1536, 1, True, True, 5, 4),
        ),
    ),
    'B4': (
        (32, 48),
        (
            (48, 48, 128, 1, False, False, 3, 6),
            (128, 96, 512, 1, True, False, 3, 6),
            (512, 192, 1024, 3, True, True, 5, 6),
            (1024, 384, 2048, 1, True, True, 5, 6),
        ),
    ),
    'B5': (
        (32, 64),
        (
            (64, 64, 128, 1, False, False, 3, 6),
            (128, 128, 512, 2, True, False, 3, 6),
            (512, 256, 1024, 5, True, True, 5, 6),
            (1024, 512, 2048, 2, True, True, 5, 6),
        ),
    ),
}


@MODELS.register_module()
class HGNetV2(LoadableModule):
    """HGNetV2 with any widths (PaddleClas; D-FINE, arXiv:2410.13842).

    Args:
        arch: a row of ``ARCHS``, or a dict of ``stem`` (channels inside and out) and ``stages``.
        learnable_affine: whether activations are followed by a scale and a shift, as in B0 to B3.
        out_indices: the stages whose maps are returned, from 0.
        frozen_norms: whether the BatchNorms keep their statistics, scales and shifts.
        in_channels: channels of the images.
        init_cfg: MMEngine's initialization config.

    Attributes:
        channels, strides: channels and stride of each output.

    Raises:
        ConfigError: if ``arch`` or ``out_indices`` names no arch or stage.
    """

    def __init__(
        self,
        arch: str | dict[str, Any] = 'B0',
        learnable_affine: bool = True,
        out_indices: Indices = (1, 2, 3),
        frozen_norms: bool = False,
        in_channels: PositiveInt = 3,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        stem, stages = _read_arch(arch)
        self.name = arch if isinstance(arch, str) else None  # for loading timm's weights
        if not {*out_indices} <= {*range(len(stages))}:
            raise ConfigError(
                f'HGNetV2: out_indices={tuple(out_indices)} must be from 0 to {len(stages) - 1}.'
            )
        self.in_channels, self.indices = in_channels, tuple(sorted(out_indices))
        self.frozen_norms = frozen_norms
        self.stem = StemV2(in_channels, stem[0], stem[1], use_lab=learnable_affine)
        self.stages = nn.ModuleList(_stage(row, learnable_affine) for row in stages)
        strides, stride = [], STEM_STRIDE
        for row in stages:
            halves = row[4]
            stride *= 2 if halves else 1
            strides.append(stride)
        outputs = [int(row[2]) for row in stages]
        self.channels = tuple(outputs[i] for i in self.indices)
        self.strides = tuple(strides[i] for i in self.indices)
        if frozen_norms:
            for norm in _norms(self):
                norm.requires_grad_(False)
                norm.num_batches_tracked = None  # published files have no counters

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> a map (B, C, h, w) for each of ``out_indices``."""
        x, maps = self.stem(images), []
        for stage in self.stages[: self.indices[-1] + 1]:
            x = stage(x)
            maps.append(x)
        return tuple(maps[i] for i in self.indices)

    def train(self, mode: bool = True) -> 'HGNetV2':
        """Set the training mode. Frozen norms stay in eval mode. Returns the model."""
        super().train(mode)
        if self.frozen_norms:
            for norm in _norms(self):
                norm.eval()
        return self

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter for layer-wise decay, and the number of depths: stem and stages."""
        last = len(self.stages) + 1
        name = param_name.removeprefix(prefix)
        if prefix and name == param_name:
            return last, last + 1  # a parameter outside of the backbone
        parts = name.split('.')
        return (int(parts[1]) + 1 if parts[0] == 'stages' else 0), last + 1

    def no_weight_decay(self) -> set[str]:
        """Names of parameters without weight decay: none here."""
        return set()

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time: the stages."""
        return [*self.stages]

    def load(
        self, source: Source, skip: Sequence[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Report:
        """Load a file of timm's model of this arch, such as ``timm://hgnetv2_b0.ssld_stage2_ft_in1k``.

        Args:
            source: see :func:`~vit_plugin.models.load_weights`.
            skip, source_grid: not supported for a CNN.

        Raises:
            ConfigError: if the file is of another model, or if the arch has no name.
        """
        if skip or source_grid:
            raise ConfigError('HGNetV2: init_cfg takes no skip or source_grid; leave them out.')
        if self.name is None:
            raise ConfigError('HGNetV2 of an arch without a name is loaded with its detector.')
        where, weights = read_source(source)
        with naming(where):
            fitted, report = fit_timm(self, f'hgnetv2_{self.name.lower()}', weights)
        self.load_state_dict(fitted, strict=False)
        return report


def _read_arch(arch: str | dict[str, Any]) -> tuple[Sequence[int], Sequence[Stage]]:
    """The stem and the stages of an arch, as in a row of ``ARCHS``."""
    if isinstance(arch, str):
        if arch not in ARCHS:
            raise ConfigError(f'HGNetV2: arch={arch!r} is not one of {", ".join(ARCHS)}.')
        return ARCHS[arch]
    stem, stages = arch.get('stem'), arch.get('stages')
    rows = stages if isinstance(stages, (list, tuple)) else ()
    lengths_fit = _are_counts(stem, 2) and all(_are_counts(row, 8) for row in rows)
    if {*arch} != {'stem', 'stages'} or not rows or not lengths_fit:
        raise ConfigError(
            f'HGNetV2: arch={arch} must have stem=(inside, out) and stages, each with 8 values: '
            'channels in, inside and out, blocks, halved, depthwise, kernel, layers.'
        )
    return arch['stem'], rows


def _are_counts(values: Any, number: int) -> bool:
    """True for a list or tuple of this many nonnegative integers or booleans."""
    return (
        isinstance(values, (list, tuple))
        and len(values) == number
        and all(isinstance(value, int) and value >= 0 for value in values)
    )


def _stage(row: Stage, learnable_affine: bool) -> nn.Module:
    """Build a stage from its eight numbers, see ``ARCHS``."""
    inputs, inside, outputs, blocks, halved, depthwise, kernel, layers = row
    return HighPerfGpuStage(
        inputs,
        inside,
        outputs,
        blocks,
        layers,
        downsample=bool(halved),
        light_block=bool(depthwise),
        kernel_size=kernel,
        use_lab=learnable_affine,
        agg='se',  # the squeezing aggregation of HGNetV2
    )


def _norms(model: nn.Module) -> list[nn.BatchNorm2d]:
    """All BatchNorms of a model."""
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
