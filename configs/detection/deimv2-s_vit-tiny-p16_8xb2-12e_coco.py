"""DEIMv2-S (arXiv:2509.20787) on COCO; 12 epochs.

    tools/dist_train.sh configs/detection/deimv2-s_vit-tiny-p16_8xb2-12e_coco.py 8

The authors train for 132 epochs with mosaic, mixup and copy-blend, from a distilled ViT-Tiny, and
state 50.9 AP. Not yet trained by us.
"""

_base_ = './ecdet-s_ecvit-t_8xb2-12e_coco.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='vit_plugin.SpatialTuningAdapter',
        arch='Ti/16',
        img_size=640,
        out_indices=(3, 7, 11),
        out_channels=192,
        pos_embed=dict(
            type='none', rotary=dict(form='centred', planes='halves', temperature=100.0)
        ),
        encoder=dict(final_norm=False),
    ),
    neck=dict(attention_act='GELU'),
    bbox_head=dict(variant='deimv2'),
)
