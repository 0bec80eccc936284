"""LeJEPA (arXiv:2511.08544) on features of 192 channels, without its backbone.

The projection is that of the authors' example, with narrower hidden layers than 2048.
"""

model = dict(
    type='vit_plugin.LeJEPA',
    neck=dict(
        type='NonLinearNeck',
        in_channels=192,
        hid_channels=512,
        out_channels=16,
        num_layers=3,
        with_last_bn=False,
        with_avg_pool=False,
        norm_cfg=dict(type='BN1d'),
    ),
    head=dict(type='vit_plugin.LeJEPAHead', weight=0.02),
)
