"""D-FINE-N (arXiv:2410.13842) on COCO; 12 epochs.

    tools/dist_train.sh configs/detection/d-fine-n_hgnetv2-b0_8xb2-12e_coco.py 8

The authors train for 160 epochs from a HGNetV2-B0 of ImageNet, and state 42.8 AP. Not yet trained
by us.
"""

_base_ = './ecdet-s_ecvit-t_8xb2-12e_coco.py'

model = dict(
    data_preprocessor=dict(mean=[0.0] * 3, std=[255.0] * 3),
    backbone=dict(_delete_=True, type='vit_plugin.HGNetV2', arch='B0', out_indices=(2, 3)),
    neck=dict(
        in_channels=[512, 1024],
        out_channels=128,
        kind='elan',
        depth=0.5,
        expansion=0.34,
        feedforward_channels=512,
        attention_act='GELU',
        projects=True,
    ),
    bbox_head=dict(
        in_channels=[128, 128],
        embed_dims=128,
        variant='d_fine',
        decoder=dict(num_layers=3, num_points=(6, 6), feedforward_channels=512),
        loss_cls=dict(_delete_=True, type='vit_plugin.OverlapVarifocalLoss'),
    ),
)
