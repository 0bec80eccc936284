"""Continue the pre-training of a published backbone with DINOv3's objective."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={'MODELS': {'DINOv3': 'vit_plugin.projects.dinov3.dinov3'}},
    continuations={'dinov3': 'dinov3'},
    published={'DINO': 'vit_plugin.projects.dinov3.published_dino:read_dino_encoder'},
)
