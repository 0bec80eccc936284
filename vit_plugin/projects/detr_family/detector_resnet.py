"""MMDetection's ResNet as a backbone of this package, for published DETRs.

It gets what the backbones here have (:mod:`vit_plugin.models.protocol`): strides and channels,
depths for layer-wise decay, and parts to shard.
"""

from collections.abc import Sequence
from typing import Any

from torch import nn

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable

with needed_by('DetectorResNet'):
    make_importable()
    from mmdet.models.backbones import ResNet

NUM_STAGES = 4
RESNET_STEM_STRIDE = 4  # pixels: a convolution and a max-pool of stride 2


class DetectorResNet(ResNet):
    """The base class of ResNets that are loaded with their detector.

    Args:
        depth: number of layers, such as 50.
        strides: stride of each stage.
        frozen_norms: whether BatchNorms keep their statistics, scales and shifts.
        **kwargs: arguments of MMDetection's ``ResNet``.

    Attributes:
        in_channels: channels of the images.
        channels, strides: channels and stride of each output.
    """

    in_channels = 3

    def __init__(
        self, depth: int, strides: Sequence[int], frozen_norms: bool, **kwargs: Any
    ) -> None:
        super().__init__(
            depth,
            strides=tuple(strides),
            norm_cfg=dict(type='BN', requires_grad=not frozen_norms),
            norm_eval=frozen_norms,
            **kwargs,
        )
        if frozen_norms:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.num_batches_tracked = None  # published files have no counters
        self.channels = tuple(64 * self.block.expansion * 2**i for i in self.out_indices)
        total, totals = RESNET_STEM_STRIDE, []
        for stride in strides:
            total *= stride
            totals.append(total)
        self.strides = tuple(totals[i] for i in self.out_indices)

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter for layer-wise decay, and the number of depths: stem and stages."""
        name = param_name.removeprefix(prefix)
        if param_name == name and prefix:  # a parameter outside of the backbone
            return NUM_STAGES + 1, NUM_STAGES + 2
        stage = int(name.removeprefix('layer')[0]) if name.startswith('layer') else 0
        return stage, NUM_STAGES + 2

    def no_weight_decay(self) -> set[str]:
        """No parameters: all get weight decay."""
        return set()

    def parts_to_shard(self) -> list[nn.Module]:
        """The four stages."""
        return [self.get_submodule(name) for name in self.res_layers]

    def load(
        self, source: Any, skip: Sequence[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Any:
        """Raise a ``ConfigError``: its weights are loaded with the whole detector."""
        raise ConfigError(
            f'{type(self).__name__} is loaded with its detector; give the complete file.'
        )
