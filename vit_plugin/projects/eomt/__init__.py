"""EoMT and PMT: query-based masks within a transformer (arXiv:2503.19108, arXiv:2603.25398)."""

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
        ('instance', 'eomt'): 'vit_plugin.projects.eomt.eomt_model:INSTANCE',
        ('panoptic', 'eomt'): 'vit_plugin.projects.eomt.eomt_model:INSTANCE',
        ('segmentation', 'eomt'): 'vit_plugin.projects.eomt.eomt_model:SEMANTIC',
    },
    published={'EoMT': 'vit_plugin.projects.eomt.published_eomt:eomt'},
    offered={
        f'eomt-{name}': ('MIT', pixels, f'hf://tue-mps/{address}')
        for name, pixels, address in (
            ('panoptic-small', 640, 'coco_panoptic_eomt_small_640_2x'),
            ('panoptic-base', 640, 'coco_panoptic_eomt_base_640_2x'),
            ('panoptic-large', 640, 'coco_panoptic_eomt_large_640'),
            ('instance-large', 640, 'coco_instance_eomt_large_640'),
            ('semantic-large', 512, 'ade20k_semantic_eomt_large_512'),
        )
    },
    names={'queries.{rest}': '', 'decoder.{rest}': ''},
    deployed={('panoptic_head', 'EoMTHead'): 'vit_plugin.deploy.deployed_module:DeployedQueries'},
)
