"""The authors' fine-tuning of R50+B/16 on ImageNet-1k at 384 px (arXiv:2010.11929, Appendix B.1.1).

    tools/dist_train.sh configs/hybrid_vit/hybrid-vit-base-r50-p16_8xb64-20k_in1k-384px.py 8

It starts from the authors' ImageNet-21k weights. Published by google-research/vision_transformer:
85.08 % top-1.
"""

_base_ = [
    '../_base_/models/hybrid-vit-base-r50-p16_in21k.py',
    '../_base_/datasets/imagenet_bs64_384px.py',
    '../_base_/schedules/sgd_finetune_20k.py',
]

model = dict(backbone=dict(img_size=384))
