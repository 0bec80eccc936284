"""Synapse multi-organ as TransUNet's authors publish it, slices resized to 224 px.

The folders are data/Synapse/{train_npz,test_vol_h5} and data/Synapse/lists/lists_Synapse, the last
of them from the authors' repository.
"""

metainfo = dict(
    classes=(
        'background',
        'aorta',
        'gallbladder',
        'left kidney',
        'right kidney',
        'liver',
        'pancreas',
        'spleen',
        'stomach',
    ),
    palette=[
        [0, 0, 0],
        [0, 0, 255],
        [0, 255, 0],
        [255, 0, 0],
        [0, 255, 255],
        [255, 0, 255],
        [255, 255, 0],
        [60, 255, 255],
        [240, 240, 240],
    ],
)

image = dict(type='vit_plugin.LoadImageSlice', window=(0.0, 1.0))
label = dict(type='vit_plugin.LoadSliceAnnotations')
resize = dict(type='Resize', scale=(224, 224), keep_ratio=False, interpolation='bicubic')
train_pipeline = [
    image,
    label,
    # Half of the slices are turned by right angles and mirrored, half of the others turned by up to
    # 20 degrees, where MMSegmentation's RandomRotFlip would blend the numbers of classes.
    dict(
        type='RandomChoice',
        transforms=[
            [dict(type='RandomRotFlip', rotate_prob=0.0, flip_prob=1.0)],
            [dict(type='RandomRotate', prob=1.0, degree=20, pad_val=0, seg_pad_val=0)],
            [],
        ],
        prob=[0.5, 0.25, 0.25],
    ),
    resize,
    dict(type='PackSegInputs'),
]
test_pipeline = [
    image,
    resize,
    label,  # after the resize: maps are compared in the file's pixels
    dict(
        type='PackSegInputs',
        meta_keys=('img_path', 'ori_shape', 'img_shape', 'scale_factor', 'case', 'slice'),
    ),
]

train_dataloader = dict(
    batch_size=24,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
    dataset=dict(
        type='vit_plugin.VolumeSlices',
        data_root='data/Synapse',
        ann_file='lists/lists_Synapse/train.txt',
        data_prefix=dict(img_path='train_npz'),
        metainfo=metainfo,
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=False),
    dataset=dict(
        type='vit_plugin.VolumeSlices',
        data_root='data/Synapse',
        ann_file='lists/lists_Synapse/test_vol.txt',
        data_prefix=dict(img_path='test_vol_h5'),
        metainfo=metainfo,
        pipeline=test_pipeline,
        test_mode=True,
    ),
)
test_dataloader = val_dataloader
# The authors count so: by volume, in voxels, with their rule for organs that are not there.
val_evaluator = dict(type='vit_plugin.SurfaceMetric', absent='transunet')
test_evaluator = val_evaluator
