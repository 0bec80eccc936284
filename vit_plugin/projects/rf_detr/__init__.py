"""RF-DETR: its backbone, and the models that Roboflow publishes (arXiv:2511.09554).

Neck and head are those of LW-DETR.
"""

from vit_plugin.project import Project

ROBOFLOW_RELEASE = 'https://storage.googleapis.com/rfdetr'  # rfdetr's assets/model_weights.py
APACHE, PLATFORM = 'Apache-2.0', 'PML-1.0'  # Roboflow's Platform Model License

PROJECT = Project(
    family='detr_family',
    registered={
        'MODELS': {
            'WindowedViT': 'vit_plugin.projects.rf_detr.windowed_vit',
            'RFDETRSegHead': 'vit_plugin.projects.rf_detr.rf_detr_seg_head',
        }
    },
    offered={
        'rf-detr-nano': (APACHE, 384, f'{ROBOFLOW_RELEASE}/nano_coco/checkpoint_best_regular.pth'),
        'rf-detr-small': (
            APACHE,
            512,
            f'{ROBOFLOW_RELEASE}/small_coco/checkpoint_best_regular.pth',
        ),
        'rf-detr-medium': (
            APACHE,
            576,
            f'{ROBOFLOW_RELEASE}/medium_coco/checkpoint_best_regular.pth',
        ),
        'rf-detr-large': (APACHE, 704, f'{ROBOFLOW_RELEASE}/rf-detr-large-2026.pth'),
        'rf-detr-base': (APACHE, 560, f'{ROBOFLOW_RELEASE}/rf-detr-base-coco.pth'),
        'rf-detr-seg-nano': (APACHE, 312, f'{ROBOFLOW_RELEASE}/rf-detr-seg-n-ft.pth'),
        'rf-detr-seg-small': (APACHE, 384, f'{ROBOFLOW_RELEASE}/rf-detr-seg-s-ft.pth'),
        'rf-detr-seg-medium': (APACHE, 432, f'{ROBOFLOW_RELEASE}/rf-detr-seg-m-ft.pth'),
        'rf-detr-seg-large': (APACHE, 504, f'{ROBOFLOW_RELEASE}/rf-detr-seg-l-ft.pth'),
        'rf-detr-seg-xlarge': (APACHE, 624, f'{ROBOFLOW_RELEASE}/rf-detr-seg-xl-ft.pth'),
        'rf-detr-seg-2xlarge': (APACHE, 768, f'{ROBOFLOW_RELEASE}/rf-detr-seg-2xl-ft.pth'),
        'rf-detr-xl': (PLATFORM, 700, f'{ROBOFLOW_RELEASE}/platform-licensed/rf-detr-xlarge.pth'),
        'rf-detr-2xl': (PLATFORM, 880, f'{ROBOFLOW_RELEASE}/platform-licensed/rf-detr-xxlarge.pth'),
    },
    models={
        ('detection', 'rf-detr'): 'vit_plugin.projects.rf_detr.rf_detr_model:RF_DETR',
        ('detection', 'rf-detr-nano'): 'vit_plugin.projects.rf_detr.rf_detr_model:RF_DETR_NANO',
        ('detection', 'rf-detr-small'): 'vit_plugin.projects.rf_detr.rf_detr_model:RF_DETR_SMALL',
        ('detection', 'rf-detr-medium'): 'vit_plugin.projects.rf_detr.rf_detr_model:RF_DETR_MEDIUM',
        ('detection', 'rf-detr-large'): 'vit_plugin.projects.rf_detr.rf_detr_model:RF_DETR_LARGE',
    },
    published={'RF-DETR': 'vit_plugin.projects.rf_detr.published_rf_detr:read_rf_detr'},
)
