"""The fields that all configs of transformers share, so that each reader need not list them.

For why every field is listed, see :class:`~vit_plugin.weights.foreign_config.ForeignConfig`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .foreign_config import ConfigKind, ForeignConfig

# Fields of `PreTrainedConfig` in transformers 4.x and 5.x that do not affect a vision model, by the
# reason.
UNUSED_FIELDS = {
    'names what wrote the file, and when': 'model_type transformers_version _name_or_path '
    'name_or_path _commit_hash custom_pipelines',
    'read elsewhere: names of classes, and whether images have several': 'id2label label2id '
    'num_labels problem_type',
    'the form of outputs, precision and memory of a run': 'dtype torch_dtype use_bfloat16 '
    'torchscript return_dict output_hidden_states output_attentions use_cache '
    'chunk_size_feed_forward attn_implementation _attn_implementation '
    '_attn_implementation_internal _attn_implementation_autoset _output_attentions '
    'experts_implementation _experts_implementation gradient_checkpointing tf_legacy_loss '
    'output_past xla_device use_return_dict',
    'the task of a training': 'finetuning_task task_specific_params',
    'models of text, their tokens and decoders': 'is_encoder_decoder is_decoder '
    'add_cross_attention cross_attention_hidden_size tie_encoder_decoder tie_word_embeddings '
    'tokenizer_class prefix bos_token_id eos_token_id pad_token_id sep_token_id '
    'decoder_start_token_id',
    'how text is generated': 'assistant_confidence_threshold assistant_lookbehind bad_words_ids '
    'begin_suppress_tokens diversity_penalty do_sample early_stopping '
    'encoder_no_repeat_ngram_size encoder_repetition_penalty epsilon_cutoff eta_cutoff '
    'exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty '
    'max_length min_length no_repeat_ngram_size num_assistant_tokens '
    'num_assistant_tokens_schedule num_beam_groups num_beams num_return_sequences output_scores '
    'remove_invalid_values repetition_penalty return_dict_in_generate suppress_tokens '
    'target_lookbehind temperature top_k top_p typical_p',
}
# Reasons why fields of several classes do not affect predictions.
FOR_INITIALIZATION = 'values of weights before a training'
FOR_DROPOUT = 'dropout of a training, which has its own here'
FOR_LOSSES = 'weights of losses and of matching, and what a training computes only for them'
FOR_MASKING = 'the token of masked pre-training'


def transformers_kind(
    defaults: Mapping[str, Any],
    *,
    unused: Mapping[str, str] | None = None,
    aliases: Mapping[str, str] | None = None,
) -> ConfigKind:
    """A :class:`ConfigKind` with these fields and those of every config of transformers.

    Quantization, custom code and per-layer fields do affect a model. They are not listed here, so
    that they are reported.

    Args:
        defaults, unused, aliases: see :class:`ConfigKind`.
    """
    all_defaults: Mapping[str, Any] = {'architectures': None, 'pruned_heads': {}, **defaults}
    shared = {
        why: ' '.join(name for name in names.split() if name not in all_defaults)
        for why, names in UNUSED_FIELDS.items()
    }
    return ConfigKind(
        defaults=all_defaults, unused={**shared, **(unused or {})}, aliases=aliases or {}
    )


# Fields by which configs of transformers 4.x name a backbone, besides `backbone_config`.
NAMED_BACKBONE: Mapping[str, Any] = dict(backbone=None, backbone_kwargs=None)
BACKBONE_UNUSED = {
    'where the weights of the backbone came from': 'use_pretrained_backbone use_timm_backbone'
}


def inner_backbone(
    config: ForeignConfig, kinds: Mapping[str, ConfigKind], absent: Mapping[str, Any]
) -> ForeignConfig:
    """The config of a backbone that is nested in a model's, as ``backbone_config``.

    Args:
        config: the model's config, whose kind has the fields of :data:`NAMED_BACKBONE`.
        kinds, absent: see :meth:`ForeignConfig.part`.
    """
    config.require('backbone_kwargs', None, {})
    part = config.part('backbone_config', kinds, absent)
    part.ignore('architectures')  # names the model of origin
    return part


# Entries of the class `BackboneConfigMixin`: stages by number, and the same stages by name.
STAGE_FIELDS: Mapping[str, Any] = dict(out_indices=None, out_features=None, stage_names=None)


def output_stages(config: ForeignConfig, num_stages: int) -> list[int]:
    """The stages after which a backbone returns its feature maps, by ``BackboneConfigMixin``.

    The blocks of a ViT and the stages of a CNN are numbered from 1. 0 is the stem.

    Args:
        config: a config with the fields of :data:`STAGE_FIELDS`.
        num_stages: the number of blocks or stages.

    Returns:
        The numbers of the stages, in ascending order. If the config states none, it is the last.

    Raises:
        ConfigError: if there are no such stages, if one is the stem, if they are not in ascending
            order, or if names and numbers differ.
    """
    stages = ['stem', *(f'stage{i}' for i in range(1, num_stages + 1))]
    config.check_agreement(stage_names=stages)
    numbers = config.get('out_indices', Sequence[int] | None)
    names = config.get('out_features', Sequence[str] | None)
    if numbers is None and names is None:
        return [num_stages]
    if names is not None:
        if not {*names} <= {*stages}:
            raise config.unsupported(
                'out_features', why=f'where its stages are {", ".join(stages)}'
            )
        named = [stages.index(name) for name in names]
    if numbers is not None:
        if not all(-len(stages) <= number < len(stages) for number in numbers):
            raise config.unsupported('out_indices', why=f'where it has {num_stages} blocks')
        numbers = [number % len(stages) for number in numbers]
    if names is not None and numbers is not None and named != numbers:
        raise config.unsupported('out_indices', 'out_features', why='which are not the same')
    outputs, field = (named, 'out_features') if numbers is None else (numbers, 'out_indices')
    if not outputs or 0 in outputs or [*outputs] != sorted({*outputs}):
        raise config.unsupported(field, why='where blocks in ascending order are expected')
    return [*outputs]
