"""RF-DETR: its backbone, and the models that Roboflow publishes (arXiv:2511.09554).

Neck and head are those of LW-DETR.
"""

from vit_plugin.project import Project

ROBOFLOW_RELEASE = 'https://storage.googleapis.com/rfdetr'  # rfdetr's assets/model_weights.py
APACHE, PLATFORM = 'Apache-2.0', 'PML-1.0'

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
        **{
            f'rf-detr-seg-{name}': (
                APACHE,
                pixels,
                f'{ROBOFLOW_RELEASE}/rf-detr-seg-{short}-ft.pth',
            )
            for name, short, pixels in (
                ('nano', 'n', 312),
                ('small', 's', 384),
                ('medium', 'm', 432),
                ('large', 'l', 504),
                ('xlarge', 'xl', 624),
                ('2xlarge', '2xl', 768),
            )
        },
        'rf-detr-xl': (PLATFORM, 700, f'{ROBOFLOW_RELEASE}/platform-licensed/rf-detr-xlarge.pth'),
        'rf-detr-2xl': (PLATFORM, 880, f'{ROBOFLOW_RELEASE}/platform-licensed/rf-detr-xxlarge.pth'),
    },
    models={
        ('detection', f'rf-detr{size}'): f'vit_plugin.projects.rf_detr.rf_detr_model:{name}'
        for size, name in (
            ('', 'RF_DETR'),
            ('-nano', 'NANO'),
            ('-small', 'SMALL'),
            ('-medium', 'MEDIUM'),
            ('-large', 'LARGE'),
        )
    },
    published={'RF-DETR': 'vit_plugin.projects.rf_detr.published_rf_detr:rf_detr'},
)
