"""Any timm model with feature maps as a backbone, computed by timm."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={'MODELS': {'TimmBackbone': 'vit_plugin.projects.timm_models.timm_backbone'}},
    wrappers={
        'vit_plugin.TimmBackbone': 'vit_plugin.projects.timm_models.wrapped_timm:timm_arguments'
    },
    published={'timm': 'vit_plugin.projects.timm_models.published_timm:timm_folder'},
)
