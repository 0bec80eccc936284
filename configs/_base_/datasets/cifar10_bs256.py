"""CIFAR-10 in the framework's own data set, which downloads it; random crop and flip."""

data_preprocessor = dict(
    num_classes=10, mean=[125.307, 122.961, 113.8575], std=[51.5865, 50.847, 51.255], to_rgb=False
)

train_pipeline = [
    dict(type='RandomCrop', crop_size=32, padding=4),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [dict(type='PackInputs')]

# An image and its mirror image, each as it is and shifted by one pixel up-left and down-right
# (arXiv:2404.00498)
tta_pipeline = [
    dict(type='NumpyToPIL'),
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='torchvision/RandomHorizontalFlip', p=p) for p in (0.0, 1.0)],
            [
                dict(
                    type='torchvision/Pad',
                    padding=[shift, shift, -shift, -shift],
                    padding_mode='reflect',
                )
                for shift in (0, 1, -1)
            ],
            [dict(type='PILToNumpy')],
            [dict(type='PackInputs')],
        ],
    ),
]

train_dataloader = dict(
    batch_size=256,
    num_workers=2,
    dataset=dict(type='CIFAR10', data_root='data/cifar10', split='train', pipeline=train_pipeline),
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
)
val_dataloader = dict(
    batch_size=256,
    num_workers=2,
    dataset=dict(type='CIFAR10', data_root='data/cifar10', split='test', pipeline=test_pipeline),
    sampler=dict(type='DefaultSampler', shuffle=False),
)
val_evaluator = [
    dict(type='Accuracy', topk=(1, 5)),
    dict(type='SingleLabelMetric', items=('precision', 'recall', 'f1-score'), average='macro'),
]

test_dataloader = val_dataloader
test_evaluator = val_evaluator
