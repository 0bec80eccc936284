r"""A two-block ViT on an overlapping convolutional stem, from scratch on CIFAR-10 as a folder.

The stem follows arXiv:2106.14881.

    python tools/train.py configs/hybrid_vit/hybrid-vit-d2-w192-conv_1xb256-16e_cifar10-folder.py \
        --amp --cfg-options optim_wrapper.fused_attention=False

About as many operations as hybrid-vit-d2-w192, without its ResNet. Ours, 2026-11-24: 85.2 % top-1,
one seed, in 57 minutes of one core of an AMD EPYC with AVX-512 (docs/results.md).
"""

_base_ = 'hybrid-vit-d2-w192_1xb256-16e_cifar10-folder.py'

model = dict(
    backbone=dict(
        patch_embed=dict(
            _delete_=True,
            type='ConvEmbed',
            channels=(32, 64, 64, 128, 192),
            strides=(1, 2, 1, 2, 1),
            kernel_sizes=(3, 3, 3, 3, 1),
        )
    )
)
