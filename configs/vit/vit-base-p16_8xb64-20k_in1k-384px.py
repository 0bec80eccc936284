"""The authors' fine-tuning of B/16 on ImageNet-1k at 384 px (arXiv:2010.11929, Appendix B.1.1).

    tools/dist_train.sh configs/vit/vit-base-p16_8xb64-20k_in1k-384px.py 8

It starts from the authors' ImageNet-21k weights. Published by google-research/vision_transformer:
84.53 % top-1.
"""

_base_ = [
    '../_base_/models/vit-base-p16_in21k.py',
    '../_base_/datasets/imagenet_bs64_384px.py',
    '../_base_/schedules/sgd_finetune_20k.py',
]

model = dict(backbone=dict(img_size=384))
