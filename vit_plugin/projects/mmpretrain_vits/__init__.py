"""MMPretrain's Vision Transformers on our backbone, by MMPretrain's own arguments."""

from vit_plugin.project import Project

# MMPretrain's encoders for masked image modeling.
_MASKED = ('MAEViT', 'MFFViT', 'MILANViT', 'MaskFeatViT')

PROJECT = Project(
    registered={
        'MODELS': {
            'MMVisionTransformer': 'vit_plugin.projects.mmpretrain_vits.mmpretrain_vit',
            'MMDistilledVisionTransformer': 'vit_plugin.projects.mmpretrain_vits.mmpretrain_vit',
            'MMMoCoV3ViT': 'vit_plugin.projects.mmpretrain_vits.mmpretrain_vit',
            'MMDeiT3': 'vit_plugin.projects.mmpretrain_vits.mmpretrain_vit',
            'MMViTEVA02': 'vit_plugin.projects.mmpretrain_vits.mmpretrain_vit',
        },
    },
    unavailable={
        f'MM{name}': f"vit_plugin.MM{name}: MMPretrain's {name} masks patches in its own forward, "
        "to pre-train, and has no translation. Pre-train with MMPretrain's class, and load the "
        'result into vit_plugin.MMVisionTransformer.'
        for name in _MASKED
    },
    hints={'fc_norm.{rest}': "type='vit_plugin.MMVisionTransformer' and out_type='avg_featmap'"},
)
