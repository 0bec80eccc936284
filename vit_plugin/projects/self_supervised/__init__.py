"""Self-supervised learning: DINO and DINOv2's objective, and encoders for MAE and SimMIM."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'MAEViT': 'vit_plugin.projects.self_supervised.masked',
            'SimMIMViT': 'vit_plugin.projects.self_supervised.masked',
            'IBOTViT': 'vit_plugin.projects.self_supervised.masked',
            'DINO': 'vit_plugin.projects.self_supervised.dino',
            'DINOHead': 'vit_plugin.projects.self_supervised.dino_head',
            'DINONeck': 'vit_plugin.projects.self_supervised.dino_head',
        },
    },
    pretraining_backbones={'IBOTViT': (), 'MAEViT': ('mask_ratio',), 'SimMIMViT': ()},
)
