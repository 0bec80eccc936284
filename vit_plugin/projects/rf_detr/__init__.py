"""RF-DETR: its backbone, and the models that Roboflow publishes (arXiv:2511.09554).

Neck and head are those of LW-DETR.
"""

from vit_plugin.project import Project

PROJECT = Project(
    registered={'MODELS': {'WindowedViT': 'vit_plugin.projects.rf_detr.windowed_vit'}},
    published={'RF-DETR': 'vit_plugin.projects.rf_detr.published_rf_detr:rf_detr'},
)
