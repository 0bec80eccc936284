"""EoMT and PMT: masks by queries in a transformer's blocks (arXiv:2503.19108, arXiv:2603.25398)."""

from vit_plugin.projects import Project

PROJECT = Project(
    registered={
        'MODELS': {
            'EoMT': 'vit_plugin.models.backbones.eomt',
            'PMT': 'vit_plugin.models.backbones.pmt',
            'EoMTHead': 'vit_plugin.models.heads.eomt_head',
            'EoMTDecodeHead': 'vit_plugin.models.heads.eomt_decode_head',
        },
        'HOOKS': {'MaskAnnealingHook': 'vit_plugin.engine.mask_annealing'},
    },
    formats={
        'eomt': 'vit_plugin.weights.formats.eomt_names:EOMT',
        'eomt_dinov3': 'vit_plugin.weights.formats.eomt_names:EOMT_DINOV3',
        'hf_eomt': 'vit_plugin.weights.formats.eomt_names:HF_EOMT',
        'hf_eomt_dinov3': 'vit_plugin.weights.formats.eomt_names:HF_EOMT_DINOV3',
        'pmt': 'vit_plugin.weights.formats.eomt_names:PMT',
        'pmt_dinov3': 'vit_plugin.weights.formats.eomt_names:PMT_DINOV3',
    },
    names={'queries.{rest}': '', 'decoder.{rest}': ''},
    deployed={('panoptic_head', 'EoMTHead'): 'vit_plugin.apps.deployed_module:DeployedQueries'},
)
