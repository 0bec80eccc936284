"""TransUNet on R50+B/16, on the organs of Synapse; 150 epochs, as its authors train it.

    python tools/train.py
    configs/segmentation/hybrid-vit-base-r50-p16_transunet_1xb24-150e_synapse-224x224.py

arXiv:2102.04306, Section 4, and the code in Beckschen/TransUNet. Theirs: mDice 77.48, mHD95 31.69
(Table 1). The pre-trained weights are those that they begin with; ours are
computed as their authors do ('authors'), and a checkpoint of theirs needs numerics='transunet'.
"""

_base_ = [
    '../_base_/models/transunet.py',
    '../_base_/datasets/synapse_bs24_224px.py',
    '../_base_/backbones/hybrid-vit-base-r50-p16.py',
    '../_base_/schedules/sgd_poly_150e.py',
]

model = dict(
    # One channel, from 0 to 1; the stem repeats it.
    data_preprocessor=dict(mean=[0.0], std=[255.0], size=(224, 224), bgr_to_rgb=False),
    backbone=dict(
        _base_.backbone,
        img_size=224,
        patch_embed=dict(with_root=True),
        with_cls_token=False,
        drop_rate=0.1,
        drop_path_rate=0.0,
    ),
    decode_head=dict(num_classes=9),
)
