"""B/16 with the authors' ImageNet-21k weights and pixel normalization, for dense tasks."""

backbone = dict(
    _delete_=True,
    type='vit_plugin.VisionTransformer',
    arch='B/16',
    with_cls_token=False,
    out_type='featmap',
    drop_path_rate=0.1,
    init_cfg=dict(
        type='Pretrained',
        checkpoint='https://storage.googleapis.com/vit_models/imagenet21k/ViT-B_16.npz',
    ),
)
pixels = dict(mean=[127.5] * 3, std=[127.5] * 3)
