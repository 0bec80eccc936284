"""S/16 from scratch on ImageNet-1k with AugReg's `medium2` (arXiv:2106.10270).

The settings are those of big_vision's `vit_i1k.py`.

    tools/dist_train.sh configs/vit/vit-small-p16-augreg_8xb512-300e_in1k.py 8

The warm-up of 10,000 steps is 32 epochs.
"""

_base_ = [
    '../_base_/models/vit-small-p16.py',
    '../_base_/datasets/imagenet_bs512_224px_augreg.py',
    '../_base_/schedules/adamw_imagenet_300e_augreg.py',
]

model = dict(
    head=dict(
        hidden_dim=384, prior_prob=1e-3, loss=dict(type='CrossEntropyLoss', use_sigmoid=True)
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.5)]),
)
