"""ViT-Adapter: a transformer with a feature pyramid, for dense tasks (arXiv:2205.08534)."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={'MODELS': {'ViTAdapter': 'vit_plugin.projects.vit_adapter.vit_adapter'}},
    formats={'vit_adapter': 'vit_plugin.projects.vit_adapter.vit_adapter_names:VIT_ADAPTER'},
    precedence=1,  # the encoder of an EoMT could also be read as an adapter's
)
