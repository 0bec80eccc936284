"""The 8 x 8 digits of scikit-learn, a fifth held out; turned by up to 22.5 degrees for training."""

data_preprocessor = dict(num_classes=10, mean=[127.5], std=[127.5], to_rgb=False)

train_pipeline = [
    dict(
        type='Rotate',
        magnitude_range=(0, 15),
        magnitude_level=15,  # of 10: up to one and a half times the range, 22.5 degrees
        magnitude_std='inf',
        prob=1.0,
        pad_val=0,
        interpolation='bilinear',
    ),
    dict(type='PackInputs'),
]
test_pipeline = [dict(type='PackInputs')]

# The images are in memory and tiny: workers would cost more than they bring.
train_dataloader = dict(
    batch_size=16,
    num_workers=0,
    dataset=dict(type='vit_plugin.Digits', split='train', pipeline=train_pipeline),
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
)
val_dataloader = dict(
    batch_size=90,
    num_workers=0,
    dataset=dict(type='vit_plugin.Digits', split='val', pipeline=test_pipeline),
    sampler=dict(type='DefaultSampler', shuffle=False),
)
val_evaluator = dict(type='Accuracy', topk=(1,))

test_dataloader = val_dataloader
test_evaluator = val_evaluator
