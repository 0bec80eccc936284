"""Shared parts of detectors with queries: DETR, LW-DETR, RF-DETR, D-FINE, DEIMv2 and ECDet."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={'MODELS': {'C2fProjector': 'vit_plugin.projects.detr_family.c2f_projector'}}
)
