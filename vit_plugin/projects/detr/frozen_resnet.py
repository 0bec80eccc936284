"""The ResNet of published DETRs: frozen norms, and stages that training and export know."""

from collections.abc import Sequence
from typing import Any, Literal

from torch import nn

from vit_plugin.arguments.fields import Indices, InitConfig
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

with needed_by('FrozenResNet'):
    make_importable()
    from mmdet.models.backbones import ResNet
    from mmdet.models.backbones.resnet import BasicBlock

STAGES = 4


@MODELS.register_module()
class FrozenResNet(ResNet):
    """MMDetection's ResNet, whose stem, first stage and norms are not trained, as in DETR.

    Args:
        depth: number of layers.
        out_indices: the stages whose maps are returned, 0 to 3.
        dilated: whether the last stage has the stride of the one before (DC5). As in torchvision
            and timm, and unlike MMDetection, its first block is not dilated.
        init_cfg: MMEngine's initialization config.

    Attributes:
        in_channels: channels of the images.
        channels, strides: of each output.

    Raises:
        ConfigError: if a ResNet without bottlenecks is dilated.
    """

    in_channels = 3

    def __init__(
        self,
        depth: Literal[18, 34, 50, 101, 152] = 50,
        out_indices: Indices = (3,),
        dilated: bool = False,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(
            depth,
            out_indices=tuple(out_indices),
            strides=(1, 2, 2, 1 if dilated else 2),
            dilations=(1, 1, 1, 2 if dilated else 1),
            frozen_stages=1,
            norm_cfg=dict(type='BN', requires_grad=False),
            norm_eval=True,
            init_cfg=init_cfg or dict(type='Kaiming', layer='Conv2d'),
        )
        if dilated:
            if self.block is BasicBlock:
                raise ConfigError(f'FrozenResNet: depth={depth} has no dilated stage; give 50.')
            first = self.layer4[0].conv2
            first.dilation = first.padding = (1, 1)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.num_batches_tracked = None  # published files count none
        self.channels = tuple(64 * self.block.expansion * 2**i for i in self.out_indices)
        self.strides = tuple(2 ** min(i + 2, 5 - dilated) for i in self.out_indices)

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter for layer-wise decay, and the number of depths: stem and stages."""
        name = param_name.removeprefix(prefix)
        if param_name == name and prefix:
            return STAGES + 1, STAGES + 2
        return (int(name[5]) if name.startswith('layer') else 0), STAGES + 2

    def no_weight_decay(self) -> set[str]:
        """No parameters."""
        return set()

    def parts_to_shard(self) -> list[nn.Module]:
        """The stages."""
        return [self.get_submodule(name) for name in self.res_layers]

    def load(
        self, source: Any, skip: Sequence[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Any:
        """Raise a ``ConfigError``: its weights are loaded with the whole detector."""
        raise ConfigError('FrozenResNet is loaded with its detector; give the complete file.')
