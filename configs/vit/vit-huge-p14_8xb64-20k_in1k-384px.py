"""Fine-tuning of H/14 on ImageNet-1k at 384 px by the authors' recipe (arXiv:2010.11929, Appendix B.1.1).

    tools/dist_train.sh configs/vit/vit-huge-p14_8xb64-20k_in1k-384px.py 8

It starts from the authors' ImageNet-21k weights. Not yet trained by us.
"""

_base_ = [
    '../_base_/models/vit-huge-p14_in21k.py', '../_base_/datasets/imagenet_bs64_384px.py',
    '../_base_/schedules/sgd_finetune_20k.py']

model = dict(backbone=dict(img_size=384))
