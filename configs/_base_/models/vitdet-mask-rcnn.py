"""Mask R-CNN on plain ViT-B: windows, four global blocks, simple feature pyramid, heads with norms.

arXiv:2203.16527, Section 3; sizes as in detectron2 `configs/common/models/mask_rcnn_vitdet.py`.
"""

_base_ = 'mmdet::_base_/models/mask-rcnn_r50_fpn.py'

norm_cfg = dict(type='mmpretrain.LN2d', eps=1e-6)
model = dict(
    data_preprocessor=dict(pad_size_divisor=1024),  # every image has the size of the position table
    backbone=dict(
        _delete_=True,
        type='vit_plugin.VisionTransformer',
        arch='B/16',
        img_size=1024,
        with_cls_token=False,
        out_type='featmap',
        pos_embed=dict(type='learned', relative=True, interpolate_mode='bicubic'),
        encoder=dict(final_norm=False, window=dict(size=14, global_blocks=(2, 5, 8, 11))),
        drop_path_rate=0.1,
        numerics='timm',  # as MAE computes
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://dl.fbaipublicfiles.com/mae/pretrain/mae_pretrain_vit_base.pth',
        ),
    ),
    neck=dict(
        _delete_=True, type='vit_plugin.SimpleFPN', in_channels=768, out_channels=256, num_outs=5
    ),
    rpn_head=dict(num_convs=2),
    roi_head=dict(
        bbox_head=dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=256, norm_cfg=norm_cfg),
        mask_head=dict(norm_cfg=norm_cfg),
    ),
)
