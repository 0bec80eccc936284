"""BCCD blood cells in Pascal VOC folders, resized to 256 x 192.

The folders are data/BCCD/{JPEGImages,Annotations,ImageSets/Main}.
"""

metainfo = dict(
    classes=('RBC', 'WBC', 'Platelets'), palette=[(220, 20, 60), (0, 0, 230), (119, 172, 48)]
)

train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='Resize', scale=(256, 192), keep_ratio=True),
    dict(type='RandomFlip', prob=0.75, direction=['horizontal', 'vertical', 'diagonal']),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(256, 192), keep_ratio=True),
    # After the resize: boxes are drawn in the file's pixels.
    dict(type='LoadAnnotations', with_bbox=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor', 'instances'),
    ),
]

train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
    dataset=dict(
        type='XMLDataset',
        data_root='data/BCCD',
        ann_file='ImageSets/Main/train.txt',
        data_prefix=dict(sub_data_root=''),
        metainfo=metainfo,
        pipeline=train_pipeline,
        filter_cfg=dict(bbox_min_size=1),
    ),
)  # two boxes have no area
val_dataloader = dict(
    batch_size=4,
    num_workers=1,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='XMLDataset',
        data_root='data/BCCD',
        ann_file='ImageSets/Main/val.txt',
        data_prefix=dict(sub_data_root=''),
        metainfo=metainfo,
        test_mode=True,
        pipeline=test_pipeline,
    ),
)
val_evaluator = dict(type='CocoMetric', metric='bbox')  # from the annotations of the samples

test_dataloader = val_dataloader
test_evaluator = val_evaluator
