"""A Mask R-CNN (arXiv:1703.06870) for a folder of images with polygons of objects."""

from collections.abc import Sequence
from typing import Any

from .detection import RETINANET, WIDE, Detection, Detector
from .schedule import Schedule

CELLS = 14  # of the finest map, along a side of the largest object that is taken from it


def rcnn_heads(classes: int, channels: int, strides: Sequence[int], octave: int) -> dict[str, Any]:
    """MMDetection's heads. Few channels have fewer units, and fewer proposals to learn from."""
    wide = channels >= WIDE
    regions = dict(
        out_channels=channels, featmap_strides=list(strides[:4]), finest_scale=CELLS * strides[0]
    )
    units, norm_cfg = (1024 if wide else 256), dict(type='GN', num_groups=16)
    heads: dict[str, Any] = dict(
        rpn_head=dict(
            in_channels=channels,
            feat_channels=channels,
            anchor_generator=dict(scales=[octave], strides=list(strides)),
        ),
        roi_head=dict(
            bbox_roi_extractor=regions,
            mask_roi_extractor=regions,
            bbox_head=dict(in_channels=channels, fc_out_channels=units, num_classes=classes),
            mask_head=dict(
                in_channels=channels,
                conv_out_channels=channels,
                num_convs=4 if wide else 2,
                num_classes=classes,
                norm_cfg=norm_cfg,
            ),
        ),
    )
    if not wide:
        heads['train_cfg'] = dict(
            rpn_proposal=dict(nms_pre=500, max_per_img=250),
            rcnn=dict(sampler=dict(num=128)),
        )
        heads['test_cfg'] = dict(rpn=dict(nms_pre=500, max_per_img=250))
    return heads


MASK_RCNN = Detector(
    'Mask R-CNN',
    'mask-rcnn_r50_fpn.py',
    rcnn_heads,
    # Muon was not measured.
    RETINANET.schedules | dict(small=Schedule(1000, (12, 72), (4, 4), 5e-4, 4, 12)),
)


class InstanceSegmentation(Detection):
    """A training on polygons of objects."""

    detector = MASK_RCNN
    metrics = ('bbox', 'segm')
    with_masks = True
