"""S/16 as in big_vision's baseline: fixed positions, mean of the patches, tanh pre-logits.

The baseline is that of arXiv:2205.01580.
"""

_base_ = 'vit-small-p16.py'

model = dict(
    backbone=dict(pos_embed='sincos2d', with_cls_token=False, out_type='avg_featmap'),
    head=dict(hidden_dim=384),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2)]),
)
