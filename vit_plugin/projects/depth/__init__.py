"""Monocular depth: DPT and Depth Anything, linear heads, losses, metrics and data sets."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'DPTDepthHead': 'vit_plugin.projects.depth.dpt_head',
            'LinearDepthHead': 'vit_plugin.projects.depth.depth_head',
            'SiLogLoss': 'vit_plugin.projects.depth.depth_losses',
            'ScaleShiftInvariantLoss': 'vit_plugin.projects.depth.depth_losses',
        },
        'METRICS': {'DepthMetric': 'vit_plugin.projects.depth.depth_metric'},
        'DATASETS': {'DepthMaps': 'vit_plugin.projects.depth.depth_annotations'},
        'TRANSFORMS': {'LoadDepthAnnotations': 'vit_plugin.projects.depth.depth_annotations'},
    },
    formats={
        'hf_dpt': 'vit_plugin.projects.depth.depth_names:HF_DPT',
        'hf_depth_anything': 'vit_plugin.projects.depth.depth_names:HF_DEPTH_ANYTHING',
    },
    models={
        ('depth', 'dpt'): 'vit_plugin.projects.depth.depth_models:DPT',
        ('depth', 'linear'): 'vit_plugin.projects.depth.depth_models:LINEAR_DEPTH',
    },
    published={'depth': 'vit_plugin.projects.depth.published_depth:depth'},
)
