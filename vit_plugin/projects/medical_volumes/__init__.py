"""Medical volumes for MMSegmentation: slices as images, and metrics of surfaces by volume."""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'METRICS': {'SurfaceMetric': 'vit_plugin.projects.medical_volumes.surface_metric'},
        'DATASETS': {'VolumeSlices': 'vit_plugin.projects.medical_volumes.volumes'},
        'TRANSFORMS': {
            'LoadImageSlice': 'vit_plugin.projects.medical_volumes.volumes',
            'LoadSliceAnnotations': 'vit_plugin.projects.medical_volumes.volumes',
        },
    },
)
