"""Fine-tuning of L/16 on ImageNet-1k at 224 px by the authors' recipe (arXiv:2106.10270).

    tools/dist_train.sh configs/vit/vit-large-p16_8xb64-20k_in1k.py 8

It starts from the authors' ImageNet-21k weights. Not yet trained by us.
"""

_base_ = [
    '../_base_/models/vit-large-p16_in21k.py', '../_base_/datasets/imagenet_bs64_224px.py',
    '../_base_/schedules/sgd_finetune_20k.py']

optim_wrapper = dict(optimizer=dict(lr=0.01))
