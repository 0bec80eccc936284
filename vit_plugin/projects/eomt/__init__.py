"""EoMT and PMT: image segmentation with queries among the tokens of a ViT.

EoMT (arXiv:2503.19108) trains the whole encoder. PMT (arXiv:2603.25398) adds a decoder to a frozen
one.
"""

from vit_plugin.project import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'EoMT': 'vit_plugin.projects.eomt.eomt',
            'PMT': 'vit_plugin.projects.eomt.pmt',
            'EoMTHead': 'vit_plugin.projects.eomt.eomt_head',
            'EoMTDecodeHead': 'vit_plugin.projects.eomt.eomt_decode_head',
        },
        'HOOKS': {'MaskAnnealingHook': 'vit_plugin.projects.eomt.mask_annealing'},
    },
    formats={
        'eomt': 'vit_plugin.projects.eomt.eomt_names:EOMT',
        'eomt_dinov3': 'vit_plugin.projects.eomt.eomt_names:EOMT_DINOV3',
        'hf_eomt': 'vit_plugin.projects.eomt.eomt_names:HF_EOMT',
        'hf_eomt_dinov3': 'vit_plugin.projects.eomt.eomt_names:HF_EOMT_DINOV3',
        'pmt': 'vit_plugin.projects.eomt.eomt_names:PMT_AUTHORS',
        'pmt_dinov3': 'vit_plugin.projects.eomt.eomt_names:PMT_DINOV3',
    },
    models={
        ('instance', 'eomt'): 'vit_plugin.projects.eomt.eomt_model:EOMT_MASK2FORMER',
        ('panoptic', 'eomt'): 'vit_plugin.projects.eomt.eomt_model:EOMT_MASK2FORMER',
        ('segmentation', 'eomt'): 'vit_plugin.projects.eomt.eomt_model:EOMT_SEMANTIC',
    },
    published={'EoMT': 'vit_plugin.projects.eomt.published_eomt:read_eomt'},
    offered={
        'eomt-panoptic-small': ('MIT', 640, 'hf://tue-mps/coco_panoptic_eomt_small_640_2x'),
        'eomt-panoptic-base': ('MIT', 640, 'hf://tue-mps/coco_panoptic_eomt_base_640_2x'),
        'eomt-panoptic-large': ('MIT', 640, 'hf://tue-mps/coco_panoptic_eomt_large_640'),
        'eomt-instance-large': ('MIT', 640, 'hf://tue-mps/coco_instance_eomt_large_640'),
        'eomt-semantic-large': ('MIT', 512, 'hf://tue-mps/ade20k_semantic_eomt_large_512'),
    },
    names={'queries.{rest}': '', 'decoder.{rest}': ''},
    deployed={
        ('panoptic_head', 'EoMTHead'): (
            'vit_plugin.tasks.detection.deployed_detectors:DeployedQueries'
        ),
    },
)
