"""EdgeCrafter (arXiv:2603.18739): ECViT, a compact backbone, and ECDet and ECSeg, detectors on it.

Decoder, neck, parameter names and file reader are those of the project ``d_fine``. See
:class:`~vit_plugin.project.Project` for the tables.
"""

from vit_plugin.project import Project

EDGECRAFTER_RELEASE = 'https://github.com/capsule2077/edgecrafter/releases/download/edgecrafterv1'
# Apache-2.0 where the files are; the project's own repository has had noncommercial terms since.
EDGECRAFTER_LICENSE = 'conflicting'

PROJECT = Project(
    family='detr_family',
    registered={
        'MODELS': {
            'ECViT': 'vit_plugin.projects.ecdet.ec_vit',
            'ECSegHead': 'vit_plugin.projects.ecdet.ecseg_head',
        }
    },
    archs={
        'ECViT-T': 'vit_plugin.projects.ecdet.ec_archs:EC_VIT_T',
        'ECViT-T+': 'vit_plugin.projects.ecdet.ec_archs:EC_VIT_T_PLUS',
        'ECViT-S': 'vit_plugin.projects.ecdet.ec_archs:EC_VIT_S',
        'ECViT-S+': 'vit_plugin.projects.ecdet.ec_archs:EC_VIT_S_PLUS',
    },
    names={'projections.{rest}': '.bbox_head.proposal_cls.'},
    offered={
        'ecdet-s': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecdet_s.pth'),
        'ecdet-m': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecdet_m.pth'),
        'ecdet-l': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecdet_l.pth'),
        'ecdet-x': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecdet_x.pth'),
        'ecseg-s': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecseg_s.pth'),
        'ecseg-m': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecseg_m.pth'),
        'ecseg-l': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecseg_l.pth'),
        'ecseg-x': (EDGECRAFTER_LICENSE, 640, f'{EDGECRAFTER_RELEASE}/ecseg_x.pth'),
    },
    models={
        ('detection', 'ecdet'): 'vit_plugin.projects.ecdet.ecdet_model:ECDET',
        ('instance', 'ecseg'): 'vit_plugin.projects.ecdet.ecdet_model:ECSEG',
    },
)
