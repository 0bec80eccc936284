"""D-FINE (arXiv:2410.13842) and RT-DETR (arXiv:2304.08069).

DEIMv2 and ECDet, which have their own projects, use D-FINE's neck, head and readers. See
:class:`~vit_plugin.project.Project` for the tables.
"""

from vit_plugin.project import Project

D_FINE_RELEASE = 'https://github.com/Peterande/storage/releases/download/dfinev1.0'

PROJECT = Project(
    family='detr_family',
    registered={
        'MODELS': {
            'DFINEHead': 'vit_plugin.projects.d_fine.d_fine_head',
            'HGNetV2': 'vit_plugin.projects.d_fine.hgnet_v2',
            'RTDETRHead': 'vit_plugin.projects.d_fine.rt_detr_head',
            'ResNetD': 'vit_plugin.projects.d_fine.resnet_d',
            'HybridEncoder': 'vit_plugin.projects.d_fine.hybrid_encoder',
            'MatchabilityAwareLoss': 'vit_plugin.projects.d_fine.fine_losses',
            'OverlapVarifocalLoss': 'vit_plugin.projects.d_fine.fine_losses',
        },
    },
    formats={
        'hf_d_fine': 'vit_plugin.projects.d_fine.d_fine_names:HF_D_FINE',
        'hf_deimv2': 'vit_plugin.projects.d_fine.d_fine_names:HF_DEIMV2',
        'hf_deimv2_cnn': 'vit_plugin.projects.d_fine.d_fine_names:HF_DEIMV2_CNN',
        'hf_rt_detr': 'vit_plugin.projects.d_fine.d_fine_names:HF_RT_DETR',
        'd_fine_authors': 'vit_plugin.projects.d_fine.authors_names:AUTHORS',
    },
    offered={
        'd-fine-n': ('Apache-2.0', 640, f'{D_FINE_RELEASE}/dfine_n_coco.pth'),
        'd-fine-s': ('Apache-2.0', 640, f'{D_FINE_RELEASE}/dfine_s_coco.pth'),
        'd-fine-m': ('Apache-2.0', 640, f'{D_FINE_RELEASE}/dfine_m_coco.pth'),
        'd-fine-l': ('Apache-2.0', 640, f'{D_FINE_RELEASE}/dfine_l_coco.pth'),
        'd-fine-x': ('Apache-2.0', 640, f'{D_FINE_RELEASE}/dfine_x_coco.pth'),
        'rt-detr-r18': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_r18vd'),
        'rt-detr-r34': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_r34vd'),
        'rt-detr-r50': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_r50vd'),
        'rt-detr-r101': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_r101vd'),
        'rt-detrv2-r18': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_v2_r18vd'),
        'rt-detrv2-r34': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_v2_r34vd'),
        'rt-detrv2-r50': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_v2_r50vd'),
        'rt-detrv2-r101': ('Apache-2.0', 640, 'hf://PekingU/rtdetr_v2_r101vd'),
    },
    names=dict.fromkeys(
        (
            'neck.{rest}',
            'backbone.stem.{rest}',
            'backbone.stages.{rest}',
            'backbone.layer1.{rest}',
            'backbone.layer2.{rest}',
            'backbone.layer3.{rest}',
            'backbone.layer4.{rest}',
        ),
        '.bbox_head.proposal_cls.',  # only keys of these heads contain it
    ),
    published={
        'D-FINE': 'vit_plugin.projects.d_fine.published_d_fine:d_fine',
        'D-FINE, DEIMv2 or ECDet': 'vit_plugin.projects.d_fine.published_authors:authors',
        'RT-DETR of its authors': 'vit_plugin.projects.d_fine.authors_of_rt_detr:rt_detr_authors',
        'RT-DETR': 'vit_plugin.projects.d_fine.published_rt_detr:rt_detr',
        'DEIMv2': 'vit_plugin.projects.d_fine.published_deimv2:deimv2',
    },
    folders={'real-time': 'vit_plugin.projects.d_fine.to_transformers:real_time_folder'},
    deployed={
        ('bbox_head', 'DFINEHead'): 'vit_plugin.tasks.detection.deployed_detectors:DeployedDETR',
        ('bbox_head', 'RTDETRHead'): 'vit_plugin.tasks.detection.deployed_detectors:DeployedDETR',
    },
)
