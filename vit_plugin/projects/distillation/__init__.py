"""Knowledge distillation: a classifier or backbone learns from the outputs of a frozen teacher."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'Distiller': 'vit_plugin.projects.distillation.distiller',
            'GramDistillation': 'vit_plugin.projects.distillation.losses',
            'LogitDistillation': 'vit_plugin.projects.distillation.losses',
            'MapDistillation': 'vit_plugin.projects.distillation.losses',
            'SimilarityDistillation': 'vit_plugin.projects.distillation.losses',
            'VectorDistillation': 'vit_plugin.projects.distillation.losses',
        },
    },
)
