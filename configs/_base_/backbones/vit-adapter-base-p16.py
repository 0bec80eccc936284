"""ViT-Adapter-B/16 with the authors' ImageNet-21k weights and normalization, for dense tasks."""

backbone = dict(
    _delete_=True,
    type='vit_plugin.ViTAdapter',
    drop_path_rate=0.3,
    backbone=dict(
        arch='B/16',
        with_cls_token=False,
        drop_path_rate=0.3,
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://storage.googleapis.com/vit_models/imagenet21k/ViT-B_16.npz',
        ),
    ),
)
pixels = dict(mean=[127.5] * 3, std=[127.5] * 3)
