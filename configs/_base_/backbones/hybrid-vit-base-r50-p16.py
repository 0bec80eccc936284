"""R50+B/16 with the authors' ImageNet-21k weights, with maps at strides 4, 8 and 16.

The maps have 256, 512 and 768 channels.
"""

_base_ = 'vit-base-p16.py'

backbone = dict(
    arch='R50+B/16',
    out_type='pyramid',
    init_cfg=dict(
        checkpoint='https://storage.googleapis.com/vit_models/imagenet21k/R50+ViT-B_16.npz'
    ),
)
