"""Image towers of OpenCLIP: ViTs by its own code, and towers of timm."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={},
    published={'OpenCLIP': 'vit_plugin.projects.open_clip.published_open_clip:open_clip_tower'},
)
