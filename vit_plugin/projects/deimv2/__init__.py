"""DEIMv2, D-FINE's detector on a Vision Transformer with a thin CNN beside it (arXiv:2509.20787).

Decoder, hybrid encoder, names and reader of files are those of D-FINE.
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
    models={('detection', 'deimv2'): 'vit_plugin.projects.deimv2.deimv2_model:DEIMV2'},
)
