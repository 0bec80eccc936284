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
        f'ECViT-{name}': f'vit_plugin.projects.ecdet.ec_archs:{row}'
        for name, row in (('T', 'T'), ('T+', 'T_PLUS'), ('S', 'S'), ('S+', 'S_PLUS'))
    },
    names={'projections.{rest}': '.bbox_head.proposal_cls.'},
    offered={
        f'{kind}-{size}': (LICENSE, 640, f'{RELEASE}/{kind}_{size}.pth')
        for kind in ('ecdet', 'ecseg')
        for size in 'smlx'
    },
    models={
        ('detection', 'ecdet'): 'vit_plugin.projects.ecdet.ecdet_model:ECDET',
        ('instance', 'ecseg'): 'vit_plugin.projects.ecdet.ecdet_model:ECSEG',
    },
)
