"""Image encoders and classifiers of transformers that our backbone computes, by ``model_type``.

For each ``model_type``, :data:`IMAGE_KINDS` states all fields of its config (a field that no reader
expects is an error, see :class:`~vit_plugin.weights.foreign_config.ForeignConfig`), its image
processor, its naming format, and what its weights must have. Each row follows the class of this
``model_type`` in transformers 5.24, ``models/*/configuration_*.py`` and ``modeling_*.py``.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .encoder_kinds import ENCODER_KINDS, MAP_FIELDS
from .foreign_config import ConfigKind
from .transformers_config import FOR_DROPOUT, FOR_INITIALIZATION, FOR_MASKING, transformers_kind

# How the tokens of the last block become the input of a head, or the features without one:
# 'cls': the class token; 'avg': the average of the patches; 'cls_avg': both; 'distilled': one head
# for the class token, and one for the distillation token; 'map': attention pooling; 'prefix': the
# average of the class token and the registers.
Pooling = Literal['cls', 'avg', 'cls_avg', 'distilled', 'map', 'prefix']
# A reason for unused fields, next to those of `transformers_config`.
UNUSED_HEAD = 'a head that this class does not have'
# Bicubic without antialiasing, as transformers' `interpolate_pos_encoding` resamples positions.
# The DINOv2 family states its own mode in `encoder_kinds`.
UNFILTERED = 'bicubic_mmpretrain'
_VIT: Mapping[str, Any] = dict(
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
    hidden_act='gelu',
    layer_norm_eps=1e-12,
    image_size=224,
    patch_size=16,
    num_channels=3,
    qkv_bias=True,
)
_UNUSED = {
    FOR_INITIALIZATION: 'initializer_range',
    FOR_DROPOUT: 'hidden_dropout_prob attention_probs_dropout_prob',
    UNUSED_HEAD: 'encoder_stride pooler_output_size pooler_act',
}
_MAE = {
    UNUSED_HEAD: 'decoder_num_attention_heads decoder_hidden_size decoder_num_hidden_layers '
    'decoder_intermediate_size mask_ratio norm_pix_loss'
}
# Fields of the image tower of a model for images and text.
_TOWER: Mapping[str, Any] = {name: value for name, value in _VIT.items() if name != 'qkv_bias'}
_CLIP = transformers_kind(
    dict(_TOWER, patch_size=32, hidden_act='quick_gelu', layer_norm_eps=1e-5),
    unused={
        FOR_INITIALIZATION: 'initializer_range initializer_factor',
        FOR_DROPOUT: 'attention_dropout dropout',
        'the space that images and text share': 'projection_dim',
    },
)
_SIGLIP = transformers_kind(
    dict(_TOWER, hidden_act='gelu_pytorch_tanh', layer_norm_eps=1e-6, vision_use_head=True),
    unused={
        FOR_INITIALIZATION: 'initializer_range initializer_factor',
        FOR_DROPOUT: 'attention_dropout',
    },
)
# The config of a model for images and text, in which that of the image tower is nested.
_TWO_TOWERS = transformers_kind(
    dict(vision_config=None, vision_config_dict=None),
    unused={
        FOR_INITIALIZATION: 'initializer_factor logit_scale_init_value',
        'the tower of text': 'text_config text_config_dict projection_dim max_logit_scale',
    },
)
_BEIT = transformers_kind(
    dict(
        _TOWER,
        use_absolute_position_embeddings=False,
        use_relative_position_bias=False,
        use_shared_relative_position_bias=False,
        layer_scale_init_value=0.1,
        use_mean_pooling=True,
        **MAP_FIELDS,
    ),
    unused={
        FOR_INITIALIZATION: 'initializer_range',
        FOR_DROPOUT: 'hidden_dropout_prob attention_probs_dropout_prob drop_path_rate',
        FOR_MASKING: 'use_mask_token vocab_size',
        UNUSED_HEAD: 'semantic_out_indices pool_scales use_auxiliary_head auxiliary_loss_weight '
        'auxiliary_channels auxiliary_num_convs auxiliary_concat_input semantic_loss_ignore_index '
        'add_fpn',
    },
)
_PIXIO = transformers_kind(
    dict(
        hidden_size=1280,
        num_hidden_layers=32,
        num_attention_heads=16,
        mlp_ratio=4,
        n_cls_tokens=8,
        hidden_act='gelu',
        layer_norm_eps=1e-6,
        image_size=256,
        patch_size=16,
        num_channels=3,
        qkv_bias=True,
        **MAP_FIELDS,
    ),
    unused={
        FOR_INITIALIZATION: 'initializer_range',
        FOR_DROPOUT: 'hidden_dropout_prob attention_probs_dropout_prob drop_path_rate',
    },
)
_AIMV2 = transformers_kind(
    dict(
        _TOWER,
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=24,
        num_attention_heads=8,
        patch_size=14,
        hidden_act='silu',
        layer_norm_eps=1e-5,
        qkv_bias=False,
        mlp_bias=False,
        use_head=True,
        is_native=False,
    ),
    unused={
        FOR_INITIALIZATION: 'initializer_range initializer_factor',
        FOR_DROPOUT: 'attention_dropout',
    },
    aliases=dict(rms_norm_eps='layer_norm_eps'),
)


class ImageKind(NamedTuple):
    """The models of transformers with one ``model_type``.

    Attributes:
        config: the fields of the config of the encoder.
        poolings: the pooling of each supported model class.
        processor: the image processor of this kind, a key of
            :data:`~vit_plugin.weights.processor_kinds.PROCESSORS`.
        names: the naming format, and the prefix of the encoder.
        required_parts: those of :data:`VARYING_PARTS` that every model of this kind has.
        interpolate_mode: how its code resamples its position table, see
            :class:`~vit_plugin.models.layers.pos_embed.PosEmbed`. Empty: it has rotary positions.
        towers: for models of images and text, the fields of the config in which the encoder's is
            the ``vision_config``.
        has_square_table: whether its code treats every position table as a square.
        unnormed: classes that leave out the norm after the last block.
        optional_parts: those of :data:`VARYING_PARTS` that depend on the config. Registers need not
            be listed if the config has ``num_register_tokens``.
    """

    config: ConfigKind
    poolings: Mapping[str, Pooling]
    processor: str
    names: tuple[str, str]
    required_parts: frozenset[str]
    interpolate_mode: str = UNFILTERED
    towers: ConfigKind | None = None
    has_square_table: bool = False
    unnormed: tuple[str, ...] = ()
    optional_parts: frozenset[str] = frozenset()

    def pooling(self, title: str, mean_pooling: bool) -> Pooling:
        """The pooling of a model class.

        Args:
            title: the name of the class.
            mean_pooling: the field ``use_mean_pooling``, if this kind has it.
        """
        is_beit = 'use_mean_pooling' in self.config.defaults
        return 'cls' if is_beit and not mean_pooling else self.poolings[title]


# Our names of parts that only some kinds of encoders have. A bias is a table of relative positions:
# OFFSETS_BIAS in each block, SHARED_BIAS once for all blocks.
POSITION_KEY, TOKEN_KEY, REGISTER_KEY, STEM_BIAS_KEY = (
    'pos_embed',
    'cls_token',
    'reg_token',
    'patch_embed.proj.bias',
)
SECOND_TOKEN, SCALE = 'dist_token', 'blocks.0.ls1.gamma'
FIRST_NORM, STEM_NORM = 'norm_pre.weight', 'patch_embed.norm.weight'
SHARED_BIAS = 'rel_pos_bias.relative_position_bias_table'
OFFSETS_BIAS = f'blocks.0.attn.{SHARED_BIAS}'
VARYING_PARTS = frozenset(
    (
        POSITION_KEY,
        TOKEN_KEY,
        REGISTER_KEY,
        STEM_BIAS_KEY,
        SECOND_TOKEN,
        SCALE,
        FIRST_NORM,
        STEM_NORM,
        OFFSETS_BIAS,
        SHARED_BIAS,
    )
)
# Classes with more weights than an encoder and a classifier.
WITH_EXTRA_WEIGHTS = (
    'Aimv2Model',
    'BeitForMaskedImageModeling',
    'CLIPModel',
    'CLIPVisionModelWithProjection',
    'SiglipModel',
    'ViTMAEForPreTraining',
)
_PATCH_PARTS = frozenset((POSITION_KEY, STEM_BIAS_KEY))
_TOKEN_PARTS = _PATCH_PARTS | {TOKEN_KEY}


def _dino(name: str, title: str) -> ImageKind:
    """A DINOv2, by its ``model_type`` and the beginning of its classes."""
    kind = ENCODER_KINDS[name]
    return ImageKind(
        kind.config,
        poolings={**dict.fromkeys(kind.models, 'cls'), f'{title}ForImageClassification': 'cls_avg'},
        processor='Bit',
        names=('hf_dinov2', f'{name}.'),
        required_parts=_TOKEN_PARTS | {SCALE},
        interpolate_mode=kind.interpolate_mode,
        has_square_table=True,
    )


def _beit(title: str, prefix: str) -> ImageKind:
    """A BEiT, by the beginning of its classes and the prefix of its encoder."""
    names = ('Model', 'ForImageClassification', 'ForMaskedImageModeling')
    return ImageKind(
        _BEIT,
        poolings={f'{title}{name}': 'avg' for name in names},
        processor='Beit',
        names=('hf_beit', prefix),
        required_parts=frozenset((STEM_BIAS_KEY, TOKEN_KEY)),
        optional_parts=frozenset((POSITION_KEY, SCALE, OFFSETS_BIAS, SHARED_BIAS)),
    )


def _aimv2(title: str, prefix: str, towers: ConfigKind | None = None) -> ImageKind:
    """An AIMv2, by its class and the prefix of its encoder."""
    return ImageKind(
        _AIMV2,
        poolings={title: 'map'},
        processor='CLIP',
        names=('hf_aimv2', prefix),
        required_parts=frozenset((STEM_BIAS_KEY, STEM_NORM)),
        towers=towers,
        has_square_table=True,
        optional_parts=frozenset((POSITION_KEY,)),
    )


# The image towers alone. A model with a text tower nests the same fields in its config.
_CLIP_TOWER = ImageKind(
    _CLIP,
    poolings=dict(
        CLIPModel='cls',
        CLIPVisionModel='cls',
        CLIPVisionModelWithProjection='cls',
        CLIPForImageClassification='avg',
    ),
    processor='CLIP',
    names=('hf_clip', 'vision_model.'),
    required_parts=frozenset((POSITION_KEY, TOKEN_KEY, FIRST_NORM)),
    has_square_table=True,
)
_SIGLIP_TOWER = ImageKind(
    _SIGLIP,
    poolings=dict(SiglipModel='map', SiglipVisionModel='map', SiglipForImageClassification='avg'),
    processor='Siglip',
    names=('hf_siglip', 'vision_model.'),
    required_parts=_PATCH_PARTS,
    has_square_table=True,
)
IMAGE_KINDS = {
    'vit': ImageKind(
        transformers_kind(_VIT, unused=_UNUSED),
        poolings=dict(ViTModel='cls', ViTForImageClassification='cls'),
        processor='ViT',
        names=('hf', 'vit.'),
        required_parts=_TOKEN_PARTS,
    ),
    'deit': ImageKind(
        transformers_kind(_VIT, unused=_UNUSED),
        poolings=dict(
            DeiTModel='cls',
            DeiTForImageClassification='cls',
            DeiTForImageClassificationWithTeacher='distilled',
        ),
        processor='DeiT',
        names=('hf_deit', 'deit.'),
        required_parts=_TOKEN_PARTS | {SECOND_TOKEN},
    ),
    'vit_mae': ImageKind(
        transformers_kind(
            _VIT, unused={**_UNUSED, UNUSED_HEAD: f'{_UNUSED[UNUSED_HEAD]} {_MAE[UNUSED_HEAD]}'}
        ),
        poolings=dict(ViTMAEModel='cls', ViTMAEForPreTraining='cls'),
        processor='ViT',
        names=('hf', 'vit.'),
        required_parts=_TOKEN_PARTS,
    ),
    'vit_msn': ImageKind(
        transformers_kind(dict(_VIT, layer_norm_eps=1e-6), unused=_UNUSED),
        poolings=dict(ViTMSNModel='cls', ViTMSNForImageClassification='cls'),
        processor='ViT',
        names=('hf', 'vit.'),
        required_parts=_TOKEN_PARTS,
    ),
    'ijepa': ImageKind(
        transformers_kind(_VIT, unused=_UNUSED),
        poolings=dict(IJepaModel='avg', IJepaForImageClassification='avg'),
        processor='ViT',
        names=('hf', 'ijepa.'),
        required_parts=_PATCH_PARTS,
    ),
    'beit': _beit('Beit', 'beit.'),
    'data2vec-vision': _beit('Data2VecVision', 'data2vec_vision.'),
    'dinov2': _dino('dinov2', 'Dinov2'),
    'dinov2_with_registers': _dino('dinov2_with_registers', 'Dinov2WithRegisters'),
    'dinov3_vit': ImageKind(
        ENCODER_KINDS['dinov3_vit'].config,
        poolings=dict(DINOv3ViTModel='cls'),
        processor='DINOv3ViT',
        names=('hf_dinov3', ''),
        required_parts=frozenset((STEM_BIAS_KEY, TOKEN_KEY, SCALE)),
        interpolate_mode='',
        has_square_table=True,
    ),
    'pixio': ImageKind(
        _PIXIO,
        poolings=dict(PixioModel='prefix'),
        processor='Bit',
        names=('hf_pixio', ''),
        required_parts=_TOKEN_PARTS,
        has_square_table=True,
        optional_parts=frozenset((REGISTER_KEY,)),
    ),
    'clip': _CLIP_TOWER._replace(towers=_TWO_TOWERS, unnormed=('CLIPForImageClassification',)),
    'clip_vision_model': _CLIP_TOWER,
    'siglip': _SIGLIP_TOWER._replace(towers=_TWO_TOWERS),
    'siglip_vision_model': _SIGLIP_TOWER,
    'aimv2': _aimv2('Aimv2Model', 'vision_model.', towers=_TWO_TOWERS),
    'aimv2_vision_model': _aimv2('Aimv2VisionModel', ''),
}
