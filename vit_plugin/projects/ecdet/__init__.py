"""ECViT, ECDet and ECSeg, EdgeCrafter's detectors on compact transformers (arXiv:2603.18739).

Decoder, hybrid encoder, parameter names and file reader are D-FINE's.
"""

from vit_plugin.project import Project

RELEASE = 'https://github.com/capsule2077/edgecrafter/releases/download/edgecrafterv1'
# Apache-2.0 where the files are; the project's own repository has had noncommercial terms since.
LICENSE = 'conflicting'

PROJECT = Project(
    family='detr_family',
    registered={
        'MODELS': {
            'ECViT': 'vit_plugin.projects.ecdet.ec_vit',
            'ECSegHead': 'vit_plugin.projects.ecdet.ecseg_head',
        }
    },
    archs={
        'ECViT-T': 'vit_plugin.projects.ecdet.ec_archs:T',
        'ECViT-T+': 'vit_plugin.projects.ecdet.ec_archs:T_PLUS',
        'ECViT-S': 'vit_plugin.projects.ecdet.ec_archs:S',
        'ECViT-S+': 'vit_plugin.projects.ecdet.ec_archs:S_PLUS',
    },
    names={'projections.{rest}': '.bbox_head.proposal_cls.'},
    offered={
        'ecdet-s': (LICENSE, 640, f'{RELEASE}/ecdet_s.pth'),
        'ecdet-m': (LICENSE, 640, f'{RELEASE}/ecdet_m.pth'),
        'ecdet-l': (LICENSE, 640, f'{RELEASE}/ecdet_l.pth'),
        'ecdet-x': (LICENSE, 640, f'{RELEASE}/ecdet_x.pth'),
        'ecseg-s': (LICENSE, 640, f'{RELEASE}/ecseg_s.pth'),
        'ecseg-m': (LICENSE, 640, f'{RELEASE}/ecseg_m.pth'),
        'ecseg-l': (LICENSE, 640, f'{RELEASE}/ecseg_l.pth'),
        'ecseg-x': (LICENSE, 640, f'{RELEASE}/ecseg_x.pth'),
    },
    models={
        ('detection', 'ecdet'): 'vit_plugin.projects.ecdet.ecdet_model:ECDET',
        ('instance', 'ecseg'): 'vit_plugin.projects.ecdet.ecdet_model:ECSEG',
    },
)
