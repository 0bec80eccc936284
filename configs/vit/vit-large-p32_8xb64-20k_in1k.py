"""Fine-tuning of L/32 on ImageNet-1k at 224 px by the authors' recipe (arXiv:2010.11929, Appendix B.1.1).

    tools/dist_train.sh configs/vit/vit-large-p32_8xb64-20k_in1k.py 8

It starts from the authors' ImageNet-21k weights. Not yet trained by us.
"""

_base_ = [
    '../_base_/models/vit-large-p32_in21k.py', '../_base_/datasets/imagenet_bs64_224px.py',
    '../_base_/schedules/sgd_finetune_20k.py']
