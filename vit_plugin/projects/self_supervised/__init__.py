"""Learning without labels: DINO with DINOv2's objective, LeJEPA, encoders for MAE and SimMIM."""

from vit_plugin.projects import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'MAEViT': 'vit_plugin.models.backbones.masked',
            'SimMIMViT': 'vit_plugin.models.backbones.masked',
            'IBOTViT': 'vit_plugin.models.backbones.masked',
            'DINO': 'vit_plugin.models.selfsup.dino',
            'DINOHead': 'vit_plugin.models.selfsup.dino',
            'DINONeck': 'vit_plugin.models.selfsup.dino',
            'LeJEPA': 'vit_plugin.models.selfsup.lejepa',
            'LeJEPAHead': 'vit_plugin.models.selfsup.lejepa',
        },
    },
    pretrains={'IBOTViT': (), 'MAEViT': ('mask_ratio',), 'SimMIMViT': ()},
)
