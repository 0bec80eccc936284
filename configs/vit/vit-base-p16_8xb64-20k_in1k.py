"""The authors' fine-tuning of B/16 on ImageNet-1k at 224 px (arXiv:2010.11929, Appendix B.1.1).

    tools/dist_train.sh configs/vit/vit-base-p16_8xb64-20k_in1k.py 8

It starts from the authors' ImageNet-21k weights.
"""

_base_ = [
    '../_base_/models/vit-base-p16_in21k.py',
    '../_base_/datasets/imagenet_bs64_224px.py',
    '../_base_/schedules/sgd_finetune_20k.py',
]
