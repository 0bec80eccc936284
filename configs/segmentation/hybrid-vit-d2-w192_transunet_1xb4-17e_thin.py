"""TransUNet's decoder on a small hybrid, from scratch on made scenes of small and thin shapes.

    python benchmarks defaults thin data/thin
    python tools/train.py configs/segmentation/hybrid-vit-d2-w192_transunet_1xb4-17e_thin.py

The hybrid is that of `vit-plugin train --data`. Its root has stride 1, and the decoder ends there.
`python benchmarks decoders` compares the decoder with others.
"""

_base_ = [
    '../_base_/models/transunet.py',
    '../_base_/datasets/thin_bs4_256px.py',
    '../_base_/schedules/muon_linear_17e.py',
]

model = dict(
    data_preprocessor=dict(mean=[127.5] * 3, std=[127.5] * 3, size=(192, 256), bgr_to_rgb=True),
    backbone=dict(
        type='vit_plugin.VisionTransformer',
        img_size=(192, 256),
        arch=dict(embed_dims=192, num_layers=2, num_heads=3, feedforward_channels=384),
        patch_embed=dict(
            type='PooledResNetEmbed', channels=(16, 32, 64, 128), patch_size=2, with_root=True
        ),
        numerics=dict(stem_norm_cfg=dict(num_groups=8)),
        with_cls_token=False,
        out_type='pyramid',
    ),
    decode_head=dict(
        in_channels=[16, 32, 64, 128, 192],
        strides=[1, 2, 4, 8, 16],
        hidden_channels=128,
        decoder_channels=(96, 64, 32, 16),
        norm_cfg=dict(type='GN', num_groups=8),
        num_classes=6,
    ),
)
