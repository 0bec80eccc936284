"""Write a trained model as a timm folder: one of timm's models, with other sizes as arguments.

A folder's ``config.json`` names a model of timm, and arguments that replace its sizes. So any model
of timm with the same modules will do.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from timm.models import model_entrypoint
from torch import Tensor, nn

from vit_plugin.arch import parse_arch
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.weights import FORMATS, recognize
from vit_plugin.weights.hub import TIMM_SCHEME
from vit_plugin.weights.image_kinds import (
    OFFSETS_BIAS,
    POSITION_KEY,
    REGISTER_KEY,
    SCALE,
    SECOND_TOKEN,
    SHARED_BIAS,
)
from vit_plugin.weights.traits import is_gated, is_rowless

from .hub_folder import (
    PLAIN_STEM,
    HubFolder,
    OutputFunction,
    hub_class_names,
    hub_pooling,
    norm_eps,
)

# Stage depths of the ResNet -> timm's hybrid with it. Other sizes are arguments.
TIMM_HYBRIDS = {
    (): 'vit_tiny_r_s16_p8_224',
    (2, 2, 2, 2): 'vit_small_r26_s32_224',
    (3, 4, 9): 'vit_base_r50_s16_224',
    (3, 4, 6, 3): 'vit_large_r50_s32_224',
}
# timm models whose Python class or norm JSON arguments cannot name.
TIMM_PLAIN, TIMM_EPS_1E_5 = 'vit_base_patch16_224', 'vit_base_patch16_clip_224'
TIMM_GATED, TIMM_DISTILLED = 'vit_giant_patch14_dinov2', 'deit_base_distilled_patch16_224'
TIMM_ROTARY, TIMM_GATED_ROTARY = 'vit_small_patch16_dinov3', 'vit_small_plus_patch16_dinov3'
TIMM_BEIT = 'beit_base_patch16_224'
TIMM_POOLING = dict(cls='token', avg='avg', map='map')
# (type, form) of the MLP's activation -> timm's name.
TIMM_ACTIVATIONS = {
    ('GELU', 'none'): 'gelu',
    ('GELU', 'tanh'): 'gelu_tanh',
    ('QuickGELU', 'none'): 'quick_gelu',
    ('SiLU', 'none'): 'silu',
}


def timm_folders(trained: TrainedModel, pixels: Mapping[str, Any]) -> Iterator[HubFolder]:
    """Write the same model as a folder of timm.

    The caller compares what timm computes with it, so options that timm has no argument for, such
    as another eps, are not checked here.

    Args:
        trained: the model.
        pixels: its preprocessing, in the fields of timm's ``pretrained_cfg``.

    Yields:
        One folder. A function for another library may yield several candidates.

    Raises:
        ConfigError: if timm has no such stem, pooling, positions or activation, or no name for a
            weight.
    """
    model, backbone = trained.model, trained.model.backbone
    # By the names of the kernel, without the prefix of the backbone.
    state, classes = dict(recognize(model.state_dict())), hub_class_names(trained)
    pooling = TIMM_POOLING.get(hub_pooling(model))
    settings: Section = dict(img_size=list(backbone.img_size))
    if isinstance(backbone.arch, str) and backbone.arch.startswith(TIMM_SCHEME):
        name = backbone.arch.removeprefix(TIMM_SCHEME).partition('.')[0]
    else:
        if (hub_pooling(model) == 'distilled') != (SECOND_TOKEN in state):
            raise ConfigError('timm has two classifiers if and only if it has a distillation token')
        if pooling is None and SECOND_TOKEN not in state:
            raise ConfigError(f'timm has no pooling of tokens such as {hub_pooling(model)}')
        name = _name_of(backbone, state)
        settings |= _sizes(backbone, state) | _options(backbone, state)
        # timm's distilled models have a pooling of their own.
        settings |= dict(global_pool=pooling) if SECOND_TOKEN not in state else {}
    weights, unnamed = FORMATS[_format_of(name)].export(state, backbone.num_heads)
    if unnamed:
        raise ConfigError(f'timm has no name for {unnamed[0]}')
    config = dict(
        architecture=name,
        num_features=backbone.embed_dims,
        **(dict(global_pool=pooling) if pooling else {}),
        model_args=settings,
        pretrained_cfg=dict(
            fixed_input_size=True,
            pool_size=None,
            first_conv=None,
            classifier=['head', 'head_dist'] if SECOND_TOKEN in state else 'head',
        ),
    )
    yield HubFolder(timm_with_classes(config, classes, pixels), weights)


def timm_with_classes(
    config: Mapping[str, Any], classes: Sequence[str], pixels: Mapping[str, Any]
) -> dict[str, Any]:
    """A timm config completed by class names, and by preprocessing as in :func:`timm_folders`."""
    count = dict(num_classes=len(classes))
    names = dict(label_names=[*classes]) if classes else {}
    pretrained_cfg = dict(pixels, **count, **config['pretrained_cfg'])
    return dict(config, **count, **names, pretrained_cfg=pretrained_cfg)


def _format_of(name: str) -> str:
    """The naming format of the weights of a timm model, by the file of timm that defines it."""
    file = model_entrypoint(name).__module__.rpartition('.')[2]
    return 'timm_eva' if file in ('eva', 'beit') else 'timm'


def _name_of(backbone: nn.Module, state: Mapping[str, Tensor]) -> str:
    """The name of a timm model with this stem and these blocks; sizes are arguments.

    Raises:
        ConfigError: if timm has no such stem.
    """
    stem = backbone.patch_embed
    stem_class, gated = type(stem).__name__, is_gated(state)
    if stem_class == PLAIN_STEM:
        if _is_beit(state):
            return TIMM_BEIT
        if 'pos_embed' not in state:
            return TIMM_GATED_ROTARY if gated else TIMM_ROTARY
        if SECOND_TOKEN in state:
            return TIMM_DISTILLED
        if gated:
            return TIMM_GATED
        has_eps_1e_5 = norm_eps(backbone) > 3e-6  # timm's have 1e-6 or 1e-5, around this one
        return TIMM_EPS_1E_5 if has_eps_1e_5 else TIMM_PLAIN
    stages = getattr(getattr(stem, 'backbone', None), 'stages', ())
    depths = tuple(len(getattr(stage, 'blocks', ())) for stage in stages)
    if stem_class != 'ResNetEmbed' or depths not in TIMM_HYBRIDS:
        raise ConfigError(
            f'timm has no stem like it ({stem_class}{f" of stages {depths}" if depths else ""})'
        )
    return TIMM_HYBRIDS[depths]


def _is_beit(state: Mapping[str, Tensor]) -> bool:
    return OFFSETS_BIAS in state or SHARED_BIAS in state


def _sizes(backbone: nn.Module, state: Mapping[str, Tensor]) -> Section:
    sizes = parse_arch(backbone.arch)
    hidden, gated = sizes.feedforward_channels, is_gated(state)
    # In models with a position table, gate and values are one array, whose total width timm counts.
    packed = gated and 'pos_embed' in state
    total = hidden * (2 if packed else 1)
    ratio = total / sizes.embed_dims
    if int(ratio * sizes.embed_dims) != total:  # timm rounds the product down
        ratio += 0.5 / sizes.embed_dims
    return dict(
        patch_size=backbone.patch_embed.patch_size,
        embed_dim=sizes.embed_dims,
        depth=sizes.num_layers,
        num_heads=sizes.num_heads,
        mlp_ratio=ratio,
    )


def _options(backbone: nn.Module, state: Mapping[str, Tensor]) -> Section:
    """The arguments of timm's class except sizes and pooling.

    timm's BEiT and its rotary encoders have no argument for the activation.
    """
    act = backbone.numerics.act_cfg
    activation = TIMM_ACTIVATIONS.get((act['type'], act.get('approximate', 'none')))
    if activation is None:
        raise ConfigError(f'its activation is {act["type"]}')
    registers = state[REGISTER_KEY].shape[1] if REGISTER_KEY in state else 0
    # Any number will do, since the weights replace it. Without an argument, some have LayerScale.
    scale = dict(init_values=1e-5 if SCALE in state else None)
    if _is_beit(state):
        return scale | dict(
            qkv_bias='blocks.0.attn.qkv.q_bias' in state,
            use_abs_pos_emb=POSITION_KEY in state,
            use_rel_pos_bias=OFFSETS_BIAS in state,
            use_shared_rel_pos_bias=SHARED_BIAS in state,
        )
    if 'pos_embed' not in state:
        biased = 'blocks.0.attn.qkv.q_bias' in state or 'blocks.0.attn.qkv.bias' in state
        rotary = getattr(backbone.rope, 'options', None)
        if rotary is None:
            raise ConfigError('timm has no such model without positions')
        options = scale | dict(
            class_token='cls_token' in state,
            num_reg_tokens=registers,
            qkv_bias=biased,
            rope_temperature=rotary.temperature,
        )
        # Gate and values are named as two layers (DINOv3) or, without LayerScale, as one (EVA-02).
        # timm has one layer where it need not align the width.
        return options if SCALE in state else options | dict(swiglu_align_to=0)
    options = scale | dict(
        class_token='cls_token' in state,
        fc_norm=False,  # timm would put the last norm after the average pooling
        act_layer=activation,
        pre_norm='norm_pre.weight' in state,
        qkv_bias='blocks.0.attn.qkv.bias' in state,
    )
    if registers or is_rowless(state):
        options |= dict(reg_tokens=registers, no_embed_class=is_rowless(state))
    return options


def read_by_timm(folder: Path, config: Mapping[str, Any]) -> OutputFunction:
    """The function that timm computes with a folder."""
    import timm

    return timm.create_model(f'local-dir:{folder}', pretrained=True).eval()
