"""ResNet-D (arXiv:1812.01187), the CNN of RT-DETR (arXiv:2304.08069)."""

from typing import Literal

from torch import nn

from vit_plugin.arguments.fields import Indices, InitConfig
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

with needed_by('ResNetD'):
    make_importable()
    from mmdet.models.backbones.resnet import BasicBlock

    from vit_plugin.projects.detr_family.detector_resnet import DetectorResNet


@MODELS.register_module()
class ResNetD(DetectorResNet):
    """A ResNet with three convolutions at its beginning, and pooled shortcuts.

    With 18 or 34 layers, the first shortcut of the first stage has a convolution, too, as in
    RT-DETR's code.

    Args:
        depth: number of layers.
        out_indices: the stages whose maps are returned, 0 to 3.
        frozen_norms: whether BatchNorms keep their statistics, scales and shifts.
        init_cfg: MMEngine's initialization config.
    """

    def __init__(
        self,
        depth: Literal[18, 34, 50, 101] = 50,
        out_indices: Indices = (1, 2, 3),
        frozen_norms: bool = True,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(
            depth,
            strides=(1, 2, 2, 2),
            frozen_norms=frozen_norms,
            out_indices=tuple(out_indices),
            deep_stem=True,
            avg_down=True,
            init_cfg=init_cfg or dict(type='Kaiming', layer='Conv2d'),
        )
        if self.block is BasicBlock:
            norm = nn.BatchNorm2d(64)
            if frozen_norms:
                norm.requires_grad_(False)
                norm.num_batches_tracked = None  # published files have no counters
            conv = nn.Conv2d(64, 64, 1, bias=False)
            # The identity stands for the pooling, so that parameters have the same names.
            self.layer1[0].downsample = nn.Sequential(nn.Identity(), conv, norm)
        self.train(self.training)  # sets a frozen `norm` to eval mode
