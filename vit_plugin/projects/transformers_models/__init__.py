"""Any backbone of transformers, computed by transformers, as a backbone."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'TransformersBackbone': 'vit_plugin.projects.transformers_models.transformers_backbone'
        }
    },
    wraps={
        'vit_plugin.TransformersBackbone': (
            'vit_plugin.projects.transformers_models.wrapped_transformers:wrapped_transformers'
        )
    },
)
