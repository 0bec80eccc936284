"""EoMT's head for semantic segmentation in MMSegmentation, and the class map that it predicts."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

from .eomt_head import EoMTHead
from .mask_queries import Prediction

with needed_by('EoMTDecodeHead'):
    make_importable()
    from mmseg.models.decode_heads import Mask2FormerHead


@MODELS.register_module()
class EoMTDecodeHead(EoMTHead, Mask2FormerHead):
    """An :class:`EoMTHead` for MMSegmentation whose masks become a class map as in Mask2Former.

    ``EoMTHead`` gives the constructor and the forward. MMSegmentation's ``Mask2FormerHead`` gives
    ``loss``, which makes the instances of MMDetection's loss from a class map.

    Args:
        num_classes: number of classes.
        ignore_index: the label of ignored pixels.
        align_corners: MMSegmentation's option, which it reads where it resizes logits.
        **kwargs: see :class:`EoMTHead`; all classes count as things here.
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        ignore_index: int = 255,
        align_corners: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, **kwargs)
        self.out_channels = num_classes  # MMSegmentation's segmentor reads it
        self.ignore_index, self.align_corners = ignore_index, align_corners

    def predict(
        self, x: Sequence[Prediction], batch_img_metas: Sequence[Mapping], test_cfg: Any
    ) -> Tensor:
        """The class scores (B, num_classes, H, W) of an EoMT, at the size of the images.

        It computes what MMSegmentation's method computes. That one copies the sizes of the images
        into data samples as plain numbers, so a graph of dynamic sizes could not be exported.
        """
        classes, masks = (parts[-1] for parts in self(x))
        meta = batch_img_metas[0]
        masks = F.interpolate(
            masks, tuple(meta.get('pad_shape', meta['img_shape'])[:2]), mode='bilinear'
        )
        return torch.einsum('bqc,bqhw->bchw', classes.softmax(-1)[..., :-1], masks.sigmoid())
