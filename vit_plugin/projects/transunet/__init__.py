"""TransUNet: a decoder with the CNN's maps, and volumes cut into slices (arXiv:2102.04306)."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'TransUNetHead': 'vit_plugin.projects.transunet.transunet_head',
            'SoftDiceLoss': 'vit_plugin.projects.transunet.soft_dice_loss',
        },
        'METRICS': {'SurfaceMetric': 'vit_plugin.projects.transunet.surface_metric'},
        'DATASETS': {'VolumeSlices': 'vit_plugin.projects.transunet.volumes'},
        'TRANSFORMS': {
            'LoadImageSlice': 'vit_plugin.projects.transunet.volumes',
            'LoadSliceAnnotations': 'vit_plugin.projects.transunet.volumes',
        },
    },
    models={
        ('segmentation', 'transunet'): 'vit_plugin.projects.transunet.transunet_model:TRANSUNET'
    },
    formats={'transunet': 'vit_plugin.projects.transunet.transunet:TRANSUNET'},
    names={
        'decode_head.conv_more.{rest}': '',
        'decode_head.blocks.{rest}': '',
        'decode_head.conv_seg.{rest}': 'decode_head.conv_more.',  # other heads have one, too
    },
)
