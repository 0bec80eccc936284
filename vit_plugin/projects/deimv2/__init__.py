"""DEIMv2, D-FINE's detector on a Vision Transformer with a thin parallel CNN (arXiv:2509.20787).

Decoder, hybrid encoder, parameter names and file reader are D-FINE's.
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
        f'deimv2-{size.lower()}': ('not-stated', side, f'hf://Intellindust/DEIMv2_{name}_COCO')
        for size, side, name in (
            ('Atto', 320, 'HGNetv2_ATTO'),
            ('Femto', 416, 'HGNetv2_FEMTO'),
            ('Pico', 640, 'HGNetv2_PICO'),
            ('N', 640, 'HGNetv2_N'),
            ('S', 640, 'DINOv3_S'),
            ('M', 640, 'DINOv3_M'),
            ('L', 640, 'DINOv3_L'),
            ('X', 640, 'DINOv3_X'),
        )
    },
    models={('detection', 'deimv2'): 'vit_plugin.projects.deimv2.deimv2_model:DEIMV2'},
)
