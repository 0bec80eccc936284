"""The hybrid of two blocks after three stages, behind a whitened root, with identities in place of skips."""

_base_ = 'hybrid-vit-d2-w192-c3.py'

model = dict(
    backbone=dict(
        pos_embed=dict(_delete_=True, type='sincos2d', endpoint=False),
        patch_embed=dict(skip=False, whitened=True, projection=False)),
    head=dict(loss=dict(label_smooth_val=0.2)))
