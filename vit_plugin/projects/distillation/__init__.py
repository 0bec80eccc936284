"""Distillation of a frozen teacher into a student."""

from vit_plugin.project import Project

_LOSSES = ('Gram', 'Logit', 'Map', 'Similarity', 'Vector')

PROJECT = Project(
    registered={
        'MODELS': {
            'Distiller': 'vit_plugin.projects.distillation.distiller',
            **{
                f'{name}Distillation': 'vit_plugin.projects.distillation.losses' for name in _LOSSES
            },
        },
    },
)
