"""What detectors with queries share: DETR, LW-DETR, RF-DETR, and those that follow."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={'MODELS': {'C2fProjector': 'vit_plugin.projects.detr_family.c2f_projector'}}
)
