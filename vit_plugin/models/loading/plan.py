"""Account for every key of a checkpoint and for every weight of a model.

"Ours" are names of parameters in our models, the targets. "Theirs" are the keys of the checkpoint.
:class:`~vit_plugin.weights.Recognized` knows which keys make which of our weights. A :class:`Plan`
compares its weights with those of one model.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from vit_plugin.arguments.encoder_options import CREATING_OPTIONS
from vit_plugin.errors import ConfigError, rejecting
from vit_plugin.project import declared_rows
from vit_plugin.suggestions import closest
from vit_plugin.weights.patterns import Pattern
from vit_plugin.weights.recognition import Recognized
from vit_plugin.weights.report import HARMLESS, Report, shortened_list
from vit_plugin.weights.rules import GRID

from ..layers.position_bias import BIAS_TABLE

# Our names in encoder and stem -> the argument of the backbone that creates the parameter. For the
# message on weights that the model lacks.
CREATING_ARGUMENTS = {
    Pattern(name): argument
    for name, argument in {
        **CREATING_OPTIONS,
        'cls_token': 'with_cls_token=True',
        'pos_embed': "pos_embed='learned'",
        'blocks.{i}.attn.rel_pos_(h|w)': "pos_embed=dict(type='learned', relative=True)",
        'blocks.{i}.attn.rel_pos_bias.{rest}': "pos_embed=dict(relative='bias')",
        'rel_pos_bias.{rest}': "pos_embed=dict(relative='shared_bias')",
        'rope.freqs': "pos_embed=dict(rotary=dict(form='mixed'))",
        'patch_embed.proj.bias': 'patch_embed=dict(bias=True)',
        'patch_embed.norm.{rest}': 'patch_embed=dict(norm_cfg=...)',
        'patch_embed.backbone.stem.{rest}': 'the arch of a hybrid',
        'patch_embed.backbone.stages.{rest}': 'the arch of a hybrid with these stages',
        **declared_rows('hints'),  # from backbones in vit_plugin.projects
    }.items()
}
BLOCK_KEY = Pattern('blocks.{i}.{rest}')
SKIPPED = 'skipped'  # the reason in a report for what `skip` names
# First parts of our names in a backbone. No weight of these may be left over in a checkpoint.
ENCODER_MODULES = (
    'cls_token',
    'dist_token',
    'reg_token',
    'pos_embed',
    'rope',
    'rel_pos_bias',
    'norm_pre',
    'norm',
    'fc_norm',
    'blocks',
    'patch_embed',
)
# Layers that depend on the number of classes, in a classifier and in a segmentor.
CLASSIFIER_PREFIXES = ('head.', 'decode_head.conv_seg.')
# Tables of relative positions, which have no effect while they are zero.
RELATIVE_TABLES = ('.rel_pos_h', '.rel_pos_w', BIAS_TABLE)


class Plan:
    """Which weights of a model a checkpoint provides, and what happens to its other keys.

    Args:
        backbone: the model's backbone.
        targets: the model's tensors to load, by our names.
        weights: the checkpoint's weights.
        skip: see :func:`~vit_plugin.models.load_weights`.
        complete: whether keys that match no rule are an error too. Otherwise torch reports them.

    Attributes:
        report: the report on every key.

    Raises:
        ConfigError: if a target is missing, or if the model's encoder or stem lacks a weight.
    """

    def __init__(
        self,
        backbone: nn.Module,
        targets: Mapping[str, Any],
        weights: Recognized,
        skip: Iterable[str] = (),
        complete: bool = True,
    ) -> None:
        self.backbone, self.targets, self.weights = backbone, targets, weights
        skip = tuple(skip)
        with rejecting(f'skip={skip} cannot be read', 'give each placeholder once', (re.error,)):
            self.skip = tuple(map(Pattern, skip))
        self.used_patterns = set[str]()  # patterns of `skip` that match a key
        self.report = Report(weights.format.name)
        surplus = self._account_for_keys(complete)
        # First, since its message on missing weights names similar keys.
        self._account_for_targets()
        self.report.notes += [
            f'skip: {pattern.text!r} matches no key of the checkpoint or of the model; correct it'
            for pattern in self.skip
            if pattern.text not in self.used_patterns
        ]
        if surplus:
            self._reject(surplus)
        self._skip_other_classifiers()

    def why_unused(self, ours: str) -> str:
        """The reason why the model has no parameter with this name, or ''."""
        if len(self.backbone.blocks) <= _block(ours) < self.backbone.num_layers:
            return 'of a block that no output needs'
        match ours.split('.'):
            case ['cls_token'] if self.backbone.cls_token is None:
                return 'the model has with_cls_token=False'
            case ['norm', *_] if isinstance(self.backbone.norm, nn.Identity):
                return 'the model has final_norm=False'
            case ['position', '_extra_state']:
                return 'the model has no learned table'
        return ''

    def _skipped(self, *names: str) -> bool:
        """True if a pattern of ``skip`` matches one of these names."""
        matching = {
            pattern.text
            for pattern in self.skip
            if any(pattern.match(name) is not None for name in names)
        }
        self.used_patterns |= matching
        return bool(matching)

    def _account_for_keys(self, complete: bool) -> dict[str, str]:
        """Record the checkpoint's unused keys and why they are unused.

        Returns:
            The keys that the model's encoder or stem lacks -> our names, '' if they match no rule.
        """
        form, prefix = self.weights.format, self.weights.prefix
        our_names = {key: ours for ours, step in self.weights.steps.items() for key in step.theirs}
        surplus = {}
        for key in self.weights.theirs:
            ours = our_names.get(key, '')
            if ours in self.targets:
                continue
            reason = self._why_ignored(key, ours)
            self.report.ignored[key] = reason or 'the model has no such parameter'
            part = ours.partition('.')[0]
            # A key that matches no rule may belong to the encoder. ('\0' begins no key.)
            may_be_encoder = key.startswith(prefix) and not key.startswith(form.outside or '\0')
            if not reason and (
                part in ENCODER_MODULES or (complete and not part and may_be_encoder)
            ):
                surplus[key] = ours
        return surplus

    def _why_ignored(self, key: str, ours: str) -> str:
        """The reason why a key may stay unused, or ''."""
        part = ours.partition('.')[0]
        if self._skipped(key, ours):
            return SKIPPED
        if part in ('head', 'neck') and not any(
            target.startswith(f'{part}.') for target in self.targets
        ):
            return f'the model has no {part}'
        reason = self.why_unused(ours) or self.weights.format.why_ignored(key, self.weights.prefix)
        if not reason and ours.endswith('bias') and not self.weights[ours].any():
            return f'all zeros, {HARMLESS}'
        return reason or ''

    def _account_for_targets(self) -> None:
        """Record the targets that are loaded, and why the others keep their initialization.

        Raises:
            ConfigError: if any other target is missing.
        """
        present_parts = {ours.partition('.')[0] for ours in self.weights}
        outside = self.targets.keys() - self.backbone.state_dict().keys()
        without_backbone = not self.weights.format.has_backbone and present_parts.isdisjoint(
            ENCODER_MODULES
        )
        missing = []
        for ours in self.targets:
            if ours == GRID:  # the model knows its own grid
                continue
            part = ours.partition('.')[0]
            theirs = self.weights.steps[ours].theirs if ours in self.weights else ()
            if self._skipped(ours, *theirs):
                found = '' if ours in self.weights else ', and not in the checkpoint'
                self.report.initialized[ours] = f'{SKIPPED}{found}'
            elif ours in self.weights:
                self.report.matched[ours] = theirs
            elif ours.endswith(RELATIVE_TABLES):
                self.report.initialized[ours] = f'relative positions start at zero, {HARMLESS}'
            elif part not in present_parts and (  # a part that the checkpoint may lack
                ours in outside or part in self.backbone.added_parts or without_backbone
            ):
                self.report.initialized[ours] = f'the checkpoint has no {part}'
            else:
                missing.append(ours)
        if missing:
            near = closest(missing[0], self.report.ignored, max_names=3, cutoff=0.4)
            left_over = f'; left over in it are {", ".join(near)}' if near else ''
            raise ConfigError(
                f'The checkpoint (format {self.report.format}) lacks '
                f'{shortened_list(missing)}{left_over}. Build the model that the checkpoint is of, '
                "or name what to leave at its initialization with skip=('blocks.11.{rest}', ...) "
                'in load_weights or init_cfg.'
            )

    def _reject(self, surplus: Mapping[str, str]) -> None:
        """Raise a ``ConfigError`` for the surplus of :meth:`_account_for_keys`."""
        groups: dict[str, list[str]] = {}
        for key, ours in surplus.items():
            groups.setdefault(self._how_to_create(ours), []).append(key)
        listed = '; '.join(f'{shortened_list(keys)} ({how})' for how, keys in groups.items())
        raise ConfigError(
            f'The checkpoint (format {self.report.format}) has weights that the model lacks, and '
            f'without which it computes something else: {listed}. Build the model that the '
            'checkpoint is of, or leave them out with load_weights(..., skip=(...)) or skip in '
            'init_cfg.'
        )

    def _how_to_create(self, ours: str) -> str:
        """Describe which model has this weight."""
        if _block(ours) >= self.backbone.num_layers:
            return 'needs an arch with more blocks'
        for pattern, argument in CREATING_ARGUMENTS.items():
            if pattern.match(ours) is not None:
                return f'needs {argument}'
        return 'no argument creates it'

    def _skip_other_classifiers(self) -> None:
        """Skip classifiers with a different number of classes, and report those of all zeros."""
        classifiers = CLASSIFIER_PREFIXES + self.backbone.added_classifiers
        # A list, since the loop deletes entries.
        for ours in [ours for ours in self.report.matched if ours.startswith(classifiers)]:
            value, target = self.weights[ours], self.targets[ours]
            if (
                value.ndim
                and value.shape[:1] != target.shape[:1]
                and value.shape[1:] == target.shape[1:]
            ):
                del self.report.matched[ours]
                self.report.initialized[ours] = (
                    f'the checkpoint has {value.shape[0]} classes, the model {target.shape[0]}'
                )
            elif ours.endswith('.weight') and not value.any():
                self.report.notes.append(
                    f'{ours} is all zeros in the checkpoint, which was published without a '
                    'classifier: fine-tune it'
                )


def _block(ours: str) -> int:
    """Index of the block that a parameter belongs to, or -1."""
    indices = dict(BLOCK_KEY.match(ours) or ())
    return int(indices.get('i', -1))
