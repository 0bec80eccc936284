"""DEIMv2, D-FINE's detector on a Vision Transformer with a thin parallel CNN (arXiv:2509.20787).

Decoder, neck, parameter names and file reader are those of the project ``d_fine``. See
:class:`~vit_plugin.project.Project` for the tables.
"""

from vit_plugin.project import Project

PROJECT = Project(
    family='detr_family',
    registered={
        'MODELS': {
            'SpatialTuningAdapter': 'vit_plugin.projects.deimv2.spatial_tuning_adapter',
            'LiteEncoder': 'vit_plugin.projects.deimv2.lite_encoder',
        },
    },
    names={'detail.{rest}': '', 'fusions.{rest}': ''},
    offered={
        'deimv2-atto': ('not-stated', 320, 'hf://Intellindust/DEIMv2_HGNetv2_ATTO_COCO'),
        'deimv2-femto': ('not-stated', 416, 'hf://Intellindust/DEIMv2_HGNetv2_FEMTO_COCO'),
        'deimv2-pico': ('not-stated', 640, 'hf://Intellindust/DEIMv2_HGNetv2_PICO_COCO'),
        'deimv2-n': ('not-stated', 640, 'hf://Intellindust/DEIMv2_HGNetv2_N_COCO'),
        'deimv2-s': ('not-stated', 640, 'hf://Intellindust/DEIMv2_DINOv3_S_COCO'),
        'deimv2-m': ('not-stated', 640, 'hf://Intellindust/DEIMv2_DINOv3_M_COCO'),
        'deimv2-l': ('not-stated', 640, 'hf://Intellindust/DEIMv2_DINOv3_L_COCO'),
        'deimv2-x': ('not-stated', 640, 'hf://Intellindust/DEIMv2_DINOv3_X_COCO'),
    },
    models={('detection', 'deimv2'): 'vit_plugin.projects.deimv2.deimv2_model:DEIMV2'},
)
