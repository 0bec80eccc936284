"""LW-DETR, a real-time detector (arXiv:2406.03459).

RF-DETR (arXiv:2511.09554) has the same projector and decoder, so its weight names are here as well.
"""

from vit_plugin.project import Project

PROJECT = Project(
    family='detr_family',
    registered={
        'MODELS': {
            'LWDETRHead': 'vit_plugin.projects.lw_detr.lw_detr_head',
            'IoUAwareBCELoss': 'vit_plugin.projects.lw_detr.iou_aware_loss',
        },
    },
    formats={
        'hf_lw_detr': 'vit_plugin.projects.lw_detr.lw_detr:HF_LW_DETR',
        'hf_rf_detr': 'vit_plugin.projects.lw_detr.lw_detr:HF_RF_DETR',
    },
    offered={
        'lw-detr-small': ('Apache-2.0', 640, 'hf://AnnaZhang/lwdetr_small_60e_coco'),
    },
    models={('detection', 'lw-detr'): 'vit_plugin.projects.lw_detr.lw_detr_model:LW_DETR'},
    published={'LW-DETR': 'vit_plugin.projects.lw_detr.published_lw_detr:read_lw_detr'},
    deployed={
        ('bbox_head', 'LWDETRHead'): 'vit_plugin.tasks.detection.deployed_detectors:DeployedDETR',
    },
)
