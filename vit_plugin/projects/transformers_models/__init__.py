"""Any image encoder of transformers as a backbone, computed by transformers."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'TransformersBackbone': 'vit_plugin.projects.transformers_models.transformers_backbone'
        }
    },
    published={
        'transformers': (
            'vit_plugin.projects.transformers_models.published_transformers:transformers_folder'
        )
    },
    wrappers={
        'vit_plugin.TransformersBackbone': (
            'vit_plugin.projects.transformers_models.wrapped_transformers:transformers_arguments'
        )
    },
)
