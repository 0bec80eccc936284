"""Made scenes of small and thin shapes, 240 to train and 80 to validate, 256 x 192.

python benchmarks defaults thin data/thin
"""

metainfo = dict(
    classes=('background', 'disc', 'square', 'triangle', 'ring', 'line'),
    palette=[[0, 0, 0], [220, 20, 60], [0, 0, 230], [119, 172, 48], [250, 170, 30], [0, 200, 200]],
)

train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
    dataset=dict(
        type='BaseSegDataset',
        data_root='data/thin',
        img_suffix='.png',
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        metainfo=metainfo,
        pipeline=[
            dict(type='vit_plugin.LoadCachedImage'),
            dict(type='LoadAnnotations'),
            dict(type='RandomFlip', prob=0.75, direction=['horizontal', 'vertical', 'diagonal']),
            dict(type='PackSegInputs'),
        ],
    ),
)
val_dataloader = dict(
    batch_size=4,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=False),
    dataset=dict(
        type='BaseSegDataset',
        data_root='data/thin',
        img_suffix='.png',
        data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
        metainfo=metainfo,
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations'),
            dict(type='PackSegInputs'),
        ],
        test_mode=True,
    ),
)
test_dataloader = val_dataloader
val_evaluator = [
    dict(type='IoUMetric', iou_metrics=['mIoU', 'mDice']),
    dict(type='vit_plugin.SurfaceMetric', prefix='surface'),
]
test_evaluator = val_evaluator
