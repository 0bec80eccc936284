"""The fields of the ``config.json`` that timm 1.0 writes (``timm/models/_hub.py``).

A :class:`ConfigKind` has the default of each field that affects predictions, and lists all other
fields by the reason why they do not. Fields that are in neither table are rejected.
"""

from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

from vit_plugin.weights.foreign_config import ConfigKind
from vit_plugin.weights.transformers_config import FOR_INITIALIZATION, transformers_kind

_LABELS = dict(num_classes=None, label_names=None, label_descriptions=None)
# `PretrainedCfg` of `timm/models/_pretrained.py`. Older files consist only of it.
_PRETRAINED_CFG = dict(
    input_size=(3, 224, 224),
    interpolation='bicubic',
    crop_pct=0.875,
    crop_mode='center',
    mean=IMAGENET_DEFAULT_MEAN,
    std=IMAGENET_DEFAULT_STD,
    fixed_input_size=False,
    global_pool=None,
    label_offset=None,
    custom_load=False,
    labels=None,
)
_UNUSED = {
    'the origin and license of the weights': 'url file hf_hub_id hf_hub_filename '
    'source tag license description origin_url paper_name paper_ids notes state_dict',
    'sizes of another test, and the smallest size': 'test_input_size min_input_size test_crop_pct '
    'pool_size test_pool_size',
    'names of layers, which the weights show': 'first_conv classifier num_features',
}
PRETRAINED_KIND = ConfigKind(
    defaults=dict(_PRETRAINED_CFG, **_LABELS, architecture=''), unused=_UNUSED
)
# transformers' `TimmWrapperConfig` adds fields.
TIMM_KIND = transformers_kind(
    dict(
        _PRETRAINED_CFG,
        **_LABELS,
        architecture='',
        model_args=None,
        pretrained_cfg=None,
        do_pooling=True,
    ),
    unused={**_UNUSED, FOR_INITIALIZATION: 'initializer_range'},
)
CLASS_FIELDS = (*_LABELS, 'labels')
# Arguments that would open a file or a URL, or change what timm returns.
NOT_MODEL_ARGS = (
    'cache_dir', 'checkpoint_path', 'exportable', 'features_only', 'no_jit', 'pretrained',
    'pretrained_cfg', 'pretrained_cfg_overlay', 'pretrained_model_args', 'scriptable',
)  # fmt: skip
# Arguments that only affect training, or how timm checks and crops images of other sizes.
TRAINING_ARGS = (
    'attn_drop_rate', 'drop_path_rate', 'drop_rate', 'pos_drop_rate', 'patch_drop_rate',
    'proj_drop_rate', 'weight_init', 'fix_init', 'dynamic_img_size', 'strict_img_size',
)  # fmt: skip
