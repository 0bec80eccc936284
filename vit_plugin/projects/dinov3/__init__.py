"""DINOv3's objective on a published backbone, and which backbone a folder of transformers is."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={'MODELS': {'DINOv3': 'vit_plugin.projects.dinov3.dinov3'}},
    continuations={'dinov3': 'dinov3'},
    published={'DINO': 'vit_plugin.projects.dinov3.published_dino:dino'},
)
