"""S/16 as big_vision's baseline (arXiv:2205.01580): fixed positions, the mean of the patches, tanh pre-logits."""

_base_ = 'vit-small-p16.py'

model = dict(
    backbone=dict(pos_embed='sincos2d', with_cls_token=False, out_type='avg_featmap'),
    head=dict(hidden_dim=384),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2)]))
