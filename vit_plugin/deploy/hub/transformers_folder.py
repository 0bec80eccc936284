"""Write a trained model as a transformers folder, by the table that is also used for reading.

A kind is a row of that table, :data:`~vit_plugin.weights.image_kinds.IMAGE_KINDS`: the models of
transformers with one ``model_type``. Several kinds and classes may fit a model, so each with the
same weights and pooling is a candidate; the caller compares what they compute.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.weights import FORMATS, recognize
from vit_plugin.weights.image_kinds import (
    IMAGE_KINDS,
    POSITION_KEY,
    REGISTER_KEY,
    VARYING_PARTS,
    WITH_EXTRA_WEIGHTS,
    ImageKind,
    Pooling,
)
from vit_plugin.weights.published_image_model import HEAD_WEIGHT, POOL_NORM
from vit_plugin.weights.traits import is_rowless

from .hub_folder import PLAIN_STEM, HubFolder, OutputFunction, hub_class_names, hub_pooling
from .transformers_fields import fields_of, folder_config

# Beginnings of the model_type of encoders that return a pooled vector by trained weights.
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
    optional_weights = VARYING_PARTS & state.keys()
    pooling, fields = hub_pooling(model), fields_of(backbone, state)
    is_rotary = fields['rope_theta'] is not None
    kinds = {
        name: kind for name, kind in IMAGE_KINDS.items() if _fits(kind, optional_weights, is_rotary)
    }
    if not kinds:
        names = ', '.join(sorted(optional_weights))
        raise ConfigError(f'transformers has no encoder with {names} alone')
    classifies = HEAD_WEIGHT in state
    has_candidate, reasons = False, list[ConfigError]()
    for name, kind, class_name in _matching_classes(kinds, classifies):
        pooled_state = _with_pooling(state, pooling, kind.pooling(class_name, POOL_NORM in state))
        if pooled_state is None:
            continue
        try:
            weights = _weights(pooled_state, kind, class_name, backbone.num_heads)
        except ConfigError as error:
            reasons.append(error)
            continue
        has_candidate = True
        config = folder_config(name, kind, class_name, fields, hub_class_names(trained))
        yield HubFolder(config, weights)
    if reasons and not has_candidate:
        raise reasons[0]
    if not has_candidate:
        what = 'classifies' if classifies else 'returns'
        raise ConfigError(
            f'no model of transformers of type {", ".join(kinds)} {what} tokens that are pooled as '
            f'here ({pooling})'
        )


def _fits(kind: ImageKind, optional_weights: frozenset[str], is_rotary: bool) -> bool:
    """Whether a kind has exactly these optional weights, and its positions are rotary or not.

    Kinds without an ``interpolate_mode`` have rotary positions.
    """
    if is_rotary == bool(kind.interpolate_mode):
        return False
    registers = {REGISTER_KEY} if 'num_register_tokens' in kind.config.defaults else set()
    return optional_weights - registers - kind.optional_parts == kind.required_parts


def _matching_classes(
    kinds: Mapping[str, ImageKind], classifies: bool
) -> Iterator[tuple[str, ImageKind, str]]:
    """Yield (name of a kind, kind, name of its class) for all classifiers, or all other classes."""
    for name, kind in kinds.items():
        if kind.towers and not classifies:
            continue  # its plain encoder has its own kind
        for class_name in kind.poolings:
            is_classifier = 'Classification' in class_name
            if is_classifier == classifies and class_name not in WITH_EXTRA_WEIGHTS:
                yield name, kind, class_name


def _with_pooling(
    state: Mapping[str, Tensor], pooling: str, target: Pooling
) -> Mapping[str, Tensor] | None:
    """The weights of the same classifier with the pooling ``target``; None if impossible.

    A classifier on class token and average, such as DINOv2's, ignores one of them if its weights
    are zero.
    """
    if pooling == target:
        return state
    if target != 'cls_avg' or pooling not in ('cls', 'avg') or HEAD_WEIGHT not in state:
        return None
    weight, zeros = state[HEAD_WEIGHT], torch.zeros_like(state[HEAD_WEIGHT])
    cls_and_avg = (weight, zeros) if pooling == 'cls' else (zeros, weight)
    return {**state, HEAD_WEIGHT: torch.cat(cls_and_avg, dim=1)}


def _weights(
    state: Mapping[str, Tensor], kind: ImageKind, class_name: str, heads: int
) -> dict[str, Tensor]:
    """The weights by transformers' names.

    Raises:
        ConfigError: if transformers has no name for a weight.
    """
    changed = dict(state)
    if (
        REGISTER_KEY in changed
        and POSITION_KEY in changed
        and REGISTER_KEY not in kind.optional_parts
        and not is_rowless(changed)
    ):
        # transformers' table has no rows for registers, so these are added to the registers.
        table, num_registers = changed['pos_embed'], changed[REGISTER_KEY].shape[1]
        class_row, register_rows, patch_rows = table.split(
            (1, num_registers, table.shape[1] - 1 - num_registers), dim=1
        )
        changed[REGISTER_KEY] = changed[REGISTER_KEY] + register_rows
        changed['pos_embed'] = torch.cat((class_row, patch_rows), dim=1)
    # The class has a final norm that it never uses, so any values will do.
    if class_name in kind.unnormed and 'norm.weight' not in changed:
        other_norm = changed['blocks.0.norm1.weight']  # it has the same shape
        changed['norm.weight'] = torch.ones_like(other_norm)
        changed['norm.bias'] = torch.zeros_like(other_norm)
    format_name, prefix = kind.names
    weights, unnamed = FORMATS[format_name].export(changed, heads, prefix)
    if unnamed:
        raise ConfigError(f'transformers has no name for {unnamed[0]}')
    return weights


def read_by_transformers(folder: Path, config: Mapping[str, Any]) -> OutputFunction | None:
    """The function that transformers computes with a folder; None if it is not installed.

    Raises:
        ConfigError: if a weight has no parameter of its shape, or a parameter no weight.
    """
    try:
        from transformers import AutoModel, AutoModelForImageClassification
    except ImportError:
        return None
    (class_name,), name = config['architectures'], config['model_type']
    # A wrapped module of transformers, such as a ResNet, is of no kind.
    classifies, kind = 'Classification' in class_name, IMAGE_KINDS.get(name)
    format_name, prefix = kind.names if kind else ('hf', '')
    auto_class = AutoModelForImageClassification if classifies else AutoModel
    model, loading_info = auto_class.from_pretrained(
        folder, output_loading_info=True, ignore_mismatched_sizes=True
    )
    # The compared outputs depend neither on a pooler nor on a mask token.
    wrong = [
        key
        for keys in loading_info.values()
        for key in map(str, keys)
        if not (kind and FORMATS[format_name].why_ignored(key, prefix))
        and (classifies or not key.startswith('pooler.'))
    ]
    if wrong:
        raise ConfigError(f'transformers has no place or no value for {min(wrong)}')
    pooling = kind.pooling(class_name, bool(config.get('use_mean_pooling'))) if kind else None

    def outputs(images: Tensor) -> Tensor:
        output = model(pixel_values=images)
        if classifies:
            return output.logits
        if name.startswith(WITH_TRAINED_POOLER) and output.pooler_output is not None:
            return output.pooler_output
        tokens = output.last_hidden_state
        return tokens.mean(dim=1) if pooling == 'avg' else tokens[:, 0]

    return outputs
