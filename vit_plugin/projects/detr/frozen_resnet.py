"""The ResNet of published DETRs, whose norms are frozen."""

from typing import Literal

from vit_plugin.arguments.fields import Indices, InitConfig
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

with needed_by('FrozenResNet'):
    make_importable()
    from mmdet.models.backbones.resnet import BasicBlock

    from vit_plugin.projects.detr_family.detector_resnet import DetectorResNet


@MODELS.register_module()
class FrozenResNet(DetectorResNet):
    """MMDetection's ResNet, whose stem, first stage and norms are not trained, as in DETR.

    Args:
        depth: number of layers.
        out_indices: the stages whose maps are returned, 0 to 3.
        dilated: whether the last stage keeps the stride of the previous one (DC5). As in
            torchvision and timm, and unlike MMDetection, its first block is not dilated.
        init_cfg: MMEngine's initialization config.

    Raises:
        ConfigError: if a ResNet without bottlenecks is dilated.
    """

    def __init__(
        self,
        depth: Literal[18, 34, 50, 101, 152] = 50,
        out_indices: Indices = (3,),
        dilated: bool = False,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(
            depth,
            strides=(1, 2, 2, 1 if dilated else 2),
            frozen_norms=True,
            out_indices=tuple(out_indices),
            dilations=(1, 1, 1, 2 if dilated else 1),
            frozen_stages=1,
            init_cfg=init_cfg or dict(type='Kaiming', layer='Conv2d'),
        )
        if dilated:
            if self.block is BasicBlock:
                raise ConfigError(f'FrozenResNet: depth={depth} has no dilated stage; give 50.')
            first_conv = self.layer4[0].conv2
            first_conv.dilation = first_conv.padding = (1, 1)
