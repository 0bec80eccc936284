"""Write a trained model as a transformers folder, with the table that is used for reading."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arch import Arch, parse_arch
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.weights import FORMATS, recognize
from vit_plugin.weights.image_kinds import (
    IMAGE_KINDS,
    OFFSETS_BIAS,
    OPTIONAL_PARTS,
    POSITION_KEY,
    REGISTER_KEY,
    SCALE,
    SHARED_BIAS,
    WITH_EXTRA_WEIGHTS,
    ImageKind,
    Pooling,
)
from vit_plugin.weights.published_encoder import (
    ACT_CFGS,
    hidden_channels,
    options_of_weights,
    shown_fields,
)
from vit_plugin.weights.published_image_model import ATTENTION_POOL, HEAD_WEIGHT, POOL_NORM

from .hub_folder import PLAIN_STEM, HubFolder, Outputs, hub_class_names, hub_pooling

# Kinds whose encoders return a vector.
WITH_TRAINED_POOLER = ('clip', 'siglip', 'beit', 'pixio', 'aimv2')


def transformers_folders(trained: TrainedModel, pixels: Mapping[str, Any]) -> Iterator[HubFolder]:
    """Folders that may be the same model, by kinds of :data:`IMAGE_KINDS`, the likeliest first.

    Raises:
        ConfigError: if no class of transformers has its modules and its pooling.
    """
    model, backbone = trained.model, trained.model.backbone
    if type(backbone.patch_embed).__name__ != PLAIN_STEM:
        raise ConfigError('the ViT of transformers has no CNN')
    state = dict(recognize(model.state_dict()))
    parts = OPTIONAL_PARTS & state.keys()
    pooling, fields = hub_pooling(model), _fields(backbone, state)
    rotary = fields['rope_theta'] is not None
    kinds = {name: kind for name, kind in IMAGE_KINDS.items() if _fits(kind, parts, rotary)}
    if not kinds:
        raise ConfigError(f'transformers has no encoder with {", ".join(sorted(parts))} alone')
    classifies = HEAD_WEIGHT in state
    offered, reasons = False, list[ConfigError]()
    for name, kind in kinds.items():
        for title in kind.poolings:
            if title in WITH_EXTRA_WEIGHTS or ('Classification' in title) != classifies:
                continue
            if kind.towers and not classifies:
                continue  # its plain encoder has its own kind
            pooled_state = _with_pooling(state, pooling, kind.pooling(title, POOL_NORM in state))
            if pooled_state is None:
                continue
            try:
                weights = _weights(pooled_state, kind, title, backbone.num_heads)
            except ConfigError as error:
                reasons.append(error)
                continue
            offered = True
            yield HubFolder(_config(name, kind, title, fields, hub_class_names(trained)), weights)
    if reasons and not offered:
        raise reasons[0]
    if not offered:
        what = 'classifies' if classifies else 'returns'
        raise ConfigError(
            f'no model of transformers of type {", ".join(kinds)} {what} tokens that are pooled as '
            f'here ({pooling})'
        )


def _fits(kind: ImageKind, parts: frozenset[str], rotary: bool) -> bool:
    """Whether a kind has exactly these optional parts, and its positions are rotary or not.

    Kinds without an ``interpolate_mode`` have rotary positions.
    """
    if rotary == bool(kind.interpolate_mode):
        return False
    registers = {REGISTER_KEY} if 'num_register_tokens' in kind.config.defaults else set()
    return parts - registers - kind.may_have == kind.parts


def _fields(backbone: nn.Module, state: Mapping[str, Tensor]) -> Section:
    """The values of all fields of any kind, by their names in transformers."""
    sizes, (height, width) = parse_arch(backbone.arch), backbone.img_size
    names = ('embed_dims', 'num_layers', 'feedforward_channels')
    options = options_of_weights(state)
    arch = {name: getattr(sizes, name) for name in names}
    return dict(
        shown_fields(arch, options),
        num_attention_heads=sizes.num_heads,
        mlp_ratio=_mlp_ratio(sizes, options['gated_mlp']),
        hidden_act=_activation(backbone),
        layer_norm_eps=backbone.numerics.norm_cfg['eps'],
        image_size=height if height == width else [height, width],
        patch_size=backbone.patch_embed.patch_size,
        num_channels=backbone.in_channels,
        rope_theta=backbone.rope.options.temperature if hasattr(backbone.rope, 'options') else None,
        vision_use_head=ATTENTION_POOL in state,
        use_head=ATTENTION_POOL in state,
        is_native=POSITION_KEY not in state,
        use_absolute_position_embeddings=POSITION_KEY in state,
        use_relative_position_bias=OFFSETS_BIAS in state,
        use_shared_relative_position_bias=SHARED_BIAS in state,
        use_mean_pooling=POOL_NORM in state,
        layer_scale_init_value=0.1 if SCALE in state else 0.0,
    )


def _mlp_ratio(sizes: Arch, gated: bool) -> float:
    """The MLP ratio for this number of channels, an integer if possible.

    It is the inverse of :func:`hidden_channels`, which takes two thirds if the MLP is gated.
    """
    width, hidden = sizes.embed_dims, sizes.feedforward_channels
    ratio = hidden * (1.5 if gated else 1) / width
    for candidate in (math.floor(ratio), math.ceil(ratio), ratio):
        if hidden_channels(width, candidate, gated) == hidden:
            return candidate
    return ratio + 0.5 / width  # half a channel more, since the product is rounded down


def _activation(backbone: nn.Module) -> str:
    wanted = {'approximate': 'none', **backbone.numerics.act_cfg}
    for name, cfg in ACT_CFGS.items():
        if {'type': 'GELU', 'approximate': 'none', **cfg} == wanted:
            return name
    raise ConfigError(f'its activation is {backbone.numerics.act_cfg["type"]}')


def _own_fields(kind: ImageKind, fields: Section) -> Section:
    """The fields of a kind, by the names in its files."""
    theirs = {field: alias for alias, field in kind.config.aliases.items()}
    return {
        theirs.get(field, field): fields[field] for field in kind.config.defaults if field in fields
    }


def encoder_config(backbone: nn.Module, name: str) -> Section:
    """The config of a transformer within that of a detector, by its ``model_type``."""
    state = dict(recognize(backbone.state_dict()))
    return dict(model_type=name, **_own_fields(IMAGE_KINDS[name], _fields(backbone, state)))


def _config(
    name: str, kind: ImageKind, title: str, fields: Section, classes: list[str]
) -> dict[str, Any]:
    """The content of ``config.json``."""
    own = _own_fields(kind, fields)
    if kind.towers:
        own = dict(vision_config=dict(own, model_type=f'{name}_vision_model'))
    config = dict(architectures=[title], model_type=name, **own, dtype='float32')
    return transformers_classes(config, classes) if 'Classification' in title else config


def transformers_classes(
    config: Mapping[str, Any], classes: Sequence[str], pixels: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A transformers config with class names.

    ``pixels`` is unused, since the preprocessing has a file of its own.
    """
    return dict(
        config,
        id2label={str(i): label for i, label in enumerate(classes)},
        label2id={label: i for i, label in enumerate(classes)},
    )


def _with_pooling(
    state: Mapping[str, Tensor], pooling: str, theirs: Pooling
) -> Mapping[str, Tensor] | None:
    """The weights of the same classifier with another pooling; None if impossible.

    A classifier on class token and average, such as DINOv2's, ignores one of them if its weights
    are zero.
    """
    if pooling == theirs:
        return state
    if theirs != 'cls_avg' or pooling not in ('cls', 'avg') or HEAD_WEIGHT not in state:
        return None
    weight, zeros = state[HEAD_WEIGHT], torch.zeros_like(state[HEAD_WEIGHT])
    cls_and_avg = (weight, zeros) if pooling == 'cls' else (zeros, weight)
    return {**state, HEAD_WEIGHT: torch.cat(cls_and_avg, dim=1)}


def _weights(
    state: Mapping[str, Tensor], kind: ImageKind, title: str, heads: int
) -> dict[str, Tensor]:
    """The weights by transformers' names.

    Raises:
        ConfigError: if transformers has no name for a weight.
    """
    ours = dict(state)
    if REGISTER_KEY in ours and POSITION_KEY in ours and REGISTER_KEY not in kind.may_have:
        # transformers' table has no rows for registers, so these are added to the registers.
        table, num_registers = ours['pos_embed'], ours[REGISTER_KEY].shape[1]
        class_row, register_rows, patch_rows = table.split(
            (1, num_registers, table.shape[1] - 1 - num_registers), dim=1
        )
        ours[REGISTER_KEY] = ours[REGISTER_KEY] + register_rows
        ours['pos_embed'] = torch.cat((class_row, patch_rows), dim=1)
    # The class has the norm, but ignores it.
    if title in kind.unnormed and 'norm.weight' not in ours:
        other_norm = ours['blocks.0.norm1.weight']  # it has the same shape
        ours['norm.weight'] = torch.ones_like(other_norm)
        ours['norm.bias'] = torch.zeros_like(other_norm)
    form, prefix = kind.names
    weights, unnamed = FORMATS[form].export(ours, heads, prefix)
    if unnamed:
        raise ConfigError(f'transformers has no name for {unnamed[0]}')
    return weights


def read_by_transformers(folder: Path, config: Mapping[str, Any]) -> Outputs | None:
    """What transformers computes with a folder. None where it is not installed.

    Raises:
        ConfigError: if a weight has no parameter, or a parameter no weight.
    """
    try:
        from transformers import AutoModel, AutoModelForImageClassification
    except ImportError:
        return None
    (title,), name = config['architectures'], config['model_type']
    classifies, kind = 'Classification' in title, IMAGE_KINDS.get(name)
    form, prefix = kind.names if kind else ('hf', '')
    auto_class = AutoModelForImageClassification if classifies else AutoModel
    model, loading_info = auto_class.from_pretrained(folder, output_loading_info=True)
    # The compared outputs depend neither on a pooler nor on a mask token.
    wrong = [
        key
        for keys in loading_info.values()
        for key in map(str, keys)
        if not (kind and FORMATS[form].why_ignored(key, prefix))
        and (classifies or not key.startswith('pooler.'))
    ]
    if wrong:
        raise ConfigError(f'transformers has no place or no value for {min(wrong)}')
    pooling = kind.pooling(title, bool(config.get('use_mean_pooling'))) if kind else None

    def outputs(images: Tensor) -> Tensor:
        output = model(pixel_values=images)
        if classifies:
            return output.logits
        if name.startswith(WITH_TRAINED_POOLER) and output.pooler_output is not None:
            return output.pooler_output
        tokens = output.last_hidden_state
        return tokens.mean(dim=1) if pooling == 'avg' else tokens[:, 0]

    return outputs
