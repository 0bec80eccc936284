"""A four-block ViT on a small ResNet, on scikit-learn's digits: the smallest real end-to-end run.

    python tools/train.py configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py

Ours, 2026-11-22: 98.33 % top-1, median of three seeds (docs/benchmarks.md).
"""

_base_ = [
    '../_base_/datasets/digits_bs16.py',
    '../_base_/schedules/digits_adamw_25e.py',
    '../_base_/default_runtime.py',
]

model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(
            embed_dims=96,
            num_layers=4,
            num_heads=4,
            feedforward_channels=192,
            patch_size=2,
            resnet=dict(stage_depths=(2,), width=32, root_stride=1),
        ),
        img_size=8,
        patch_embed=dict(in_channels=1),
        with_cls_token=False,
        out_type='avg_featmap',
    ),
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=10,
        in_channels=96,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, num_classes=10),
    ),
)
