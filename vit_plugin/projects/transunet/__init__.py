"""TransUNet: a segmentation decoder on a hybrid's tokens and CNN maps (arXiv:2102.04306)."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'TransUNetHead': 'vit_plugin.projects.transunet.transunet_head',
            'SoftDiceLoss': 'vit_plugin.projects.transunet.soft_dice_loss',
        },
    },
    models={
        ('segmentation', 'transunet'): 'vit_plugin.projects.transunet.transunet_model:TRANSUNET'
    },
    formats={'transunet': 'vit_plugin.projects.transunet.transunet:TRANSUNET_NAMES'},
    names={
        'decode_head.conv_more.{rest}': '',
        'decode_head.blocks.{rest}': '',
        'decode_head.conv_seg.{rest}': 'decode_head.conv_more.',  # other heads also have conv_seg
    },
)
