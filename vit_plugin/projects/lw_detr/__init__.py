"""LW-DETR and RF-DETR: real-time detectors (arXiv:2406.03459, arXiv:2511.09554)."""

from vit_plugin.projects import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'WindowedViT': 'vit_plugin.models.backbones.windowed_vit',
            'C2fProjector': 'vit_plugin.models.necks.c2f_projector',
            'LWDETRHead': 'vit_plugin.models.heads.lw_detr_head',
            'IoUAwareBCELoss': 'vit_plugin.models.heads.iou_aware_loss',
        },
    },
    formats={
        'hf_lw_detr': 'vit_plugin.weights.formats.lw_detr:HF_LW_DETR',
        'hf_rf_detr': 'vit_plugin.weights.formats.lw_detr:HF_RF_DETR',
    },
    deployed={('bbox_head', 'LWDETRHead'): 'vit_plugin.apps.deployed_boxes:DeployedDETR'},
)
