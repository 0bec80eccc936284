"""ImageNet-21k at 224 px for the authors' pre-training: crops and flips; 21,841 classes.

The class list is in `meta`.
"""

_base_ = 'imagenet_bs64_224px.py'

data_preprocessor = dict(num_classes=21841)

train_dataloader = dict(
    batch_size=128,
    dataset=dict(
        _delete_=True,
        type='ImageNet21k',
        data_root='data/imagenet21k',
        split='train',
        pipeline={{_base_.train_pipeline}},
    ),
    sampler=dict(_delete_=True, type='vit_plugin.DefaultSampler', shuffle=True),
)
val_dataloader = test_dataloader = val_evaluator = test_evaluator = None
