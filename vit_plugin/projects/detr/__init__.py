"""The published DETR, Conditional DETR and Deformable DETR, as MMDetection's detectors.

arXiv:2005.12872, arXiv:2108.06152 and arXiv:2010.04159.
"""

from vit_plugin.project import Project

PROJECT = Project(
    family='detr_family',
    registered={
        'MODELS': {
            'FrozenResNet': 'vit_plugin.projects.detr.frozen_resnet',
            'PublishedDETRHead': 'vit_plugin.projects.detr.published_heads',
            'PublishedConditionalDETRHead': 'vit_plugin.projects.detr.published_heads',
            'PublishedDeformableDETRHead': 'vit_plugin.projects.detr.published_heads',
        },
    },
    formats={'hf_detr': 'vit_plugin.projects.detr.detr_names:HF_DETR'},
    published={'DETR': 'vit_plugin.projects.detr.published_detr:detr'},
    offered={
        name: ('Apache-2.0', 800, f'hf://{owner}/{name}')
        for owner, names in (
            ('facebook', 'detr-resnet-50 detr-resnet-50-dc5 detr-resnet-101 detr-resnet-101-dc5'),
            ('microsoft', 'conditional-detr-resnet-50'),
            (
                'SenseTime',
                'deformable-detr deformable-detr-single-scale deformable-detr-single-scale-dc5 '
                'deformable-detr-with-box-refine deformable-detr-with-box-refine-two-stage',
            ),
        )
        for name in names.split()
    },
    deployed={
        ('bbox_head', 'PublishedDETRHead'): (
            'vit_plugin.tasks.detection.deployed_detectors:DeployedTransformer'
        ),
        ('bbox_head', 'PublishedConditionalDETRHead'): (
            'vit_plugin.tasks.detection.deployed_detectors:DeployedTransformer'
        ),
    },
)
