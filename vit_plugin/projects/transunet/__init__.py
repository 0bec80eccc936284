"""TransUNet: a decoder with the CNN's maps, and volumes cut into slices (arXiv:2102.04306)."""

from vit_plugin.projects import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'TransUNetHead': 'vit_plugin.models.heads.transunet_head',
            'SoftDiceLoss': 'vit_plugin.models.heads.soft_dice_loss',
        },
        'METRICS': {'SurfaceMetric': 'vit_plugin.engine.surface_metric'},
        'DATASETS': {'VolumeSlices': 'vit_plugin.data.volumes'},
        'TRANSFORMS': {
            'LoadImageSlice': 'vit_plugin.data.volumes',
            'LoadSliceAnnotations': 'vit_plugin.data.volumes',
        },
    },
    formats={'transunet': 'vit_plugin.weights.formats.transunet:TRANSUNET'},
    names={
        'decode_head.conv_more.{rest}': '',
        'decode_head.blocks.{rest}': '',
        'decode_head.conv_seg.{rest}': 'decode_head.conv_more.',  # other heads have one, too
    },
)
