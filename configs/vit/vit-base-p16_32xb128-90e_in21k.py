"""Pre-training of B/16 on ImageNet-21k with tanh pre-logits (arXiv:2010.11929, Table 3).

    NNODES=4 tools/dist_train.sh configs/vit/vit-base-p16_32xb128-90e_in21k.py 8

Its 10,000 steps of warm-up are 3 epochs. There is no validation: the pre-training is judged by what
is fine-tuned from it.
"""

_base_ = [
    '../_base_/models/vit-base-p16.py',
    '../_base_/datasets/imagenet21k_bs128_224px.py',
    '../_base_/schedules/adamw_imagenet_300e.py',
]

model = dict(backbone=dict(drop_rate=0.1), head=dict(num_classes=21841, hidden_dim=768))
optim_wrapper = dict(optimizer=dict(weight_decay=0.03))
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-4, end=3, convert_to_iter_based=True),
    dict(type='PolyLR', power=1.0, begin=3, convert_to_iter_based=True),
]
schedule_length = 90
train_cfg = dict(max_epochs=90)
val_cfg = test_cfg = None
default_hooks = dict(checkpoint=dict(save_best=None))
auto_scale_lr = dict(base_batch_size=4096)
