"""MoCo v3 (arXiv:2104.02057) on features of 192 channels, without its backbone.

The necks are narrower than the paper's (4096), for small images.
"""

temperature = 0.2
model = dict(
    type='MoCoV3',
    base_momentum=0.01,
    neck=dict(
        type='NonLinearNeck',
        in_channels=192,
        hid_channels=512,
        out_channels=128,
        num_layers=3,
        with_last_bn=True,
        with_last_bn_affine=False,
        with_avg_pool=False,
        norm_cfg=dict(type='BN1d'),
    ),
    head=dict(
        type='MoCoV3Head',
        predictor=dict(
            type='NonLinearNeck',
            in_channels=128,
            hid_channels=512,
            out_channels=128,
            num_layers=2,
            with_last_bn=True,
            with_last_bn_affine=False,
            with_avg_pool=False,
            norm_cfg=dict(type='BN1d'),
        ),
        loss=dict(type='CrossEntropyLoss', loss_weight=2 * temperature),
        temperature=temperature,
    ),
)
