"""A six-block ViT on scikit-learn's digits, with the compute (16 Mflop) of the four-block hybrid.

    python tools/train.py configs/vit/vit-mini-p2_1xb16_digits.py

Ours, 2026-11-22: 95.00 % top-1, median of three seeds (docs/benchmarks.md).
"""

_base_ = '../hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'

model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=96,
            num_layers=6,
            num_heads=4,
            feedforward_channels=224,
            patch_size=2,
        )
    )
)
