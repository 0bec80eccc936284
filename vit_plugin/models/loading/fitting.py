"""Match every key of a checkpoint with the weights of a model."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from vit_plugin.arguments.encoder import CREATES
from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import closest
from vit_plugin.weights.claims import traits
from vit_plugin.weights.conversion import Plan, choose_format
from vit_plugin.weights.files import LazyArrays
from vit_plugin.weights.formats import FORMATS
from vit_plugin.weights.patterns import Pattern
from vit_plugin.weights.report import HARMLESS, Report, some
from vit_plugin.weights.rules import COMPUTED, GRID
from vit_plugin.weights.unpacking import prepared

from ..layers.attention import Attention
from ..layers.attention_pool import AttentionPool
from ..layers.numerics import NUMERICS, Numerics
from ..stems import ResNetEmbed
from .adapt import Adapter
from .tables import agrees

# Our names in the encoder and stem, and the argument of the backbone that creates the parameter.
ARGUMENTS = {
    Pattern(name): argument
    for name, argument in {
        **CREATES,
        'cls_token': 'with_cls_token=True',
        'pos_embed': "pos_embed='learned'",
        'fc_norm.{rest}': "type='vit_plugin.MMVisionTransformer' and out_type='avg_featmap'",
        'blocks.{i}.attn.rel_pos_(h|w)': "pos_embed=dict(type='learned', relative=True)",
        'rope.freqs': "pos_embed=dict(rotary=dict(form='mixed'))",
        'patch_embed.proj.bias': 'patch_embed=dict(bias=True)',
        'patch_embed.norm.{rest}': 'patch_embed=dict(norm_cfg=...)',
        'patch_embed.backbone.stem.{rest}': 'the arch of a hybrid',
        'patch_embed.backbone.stages.{rest}': 'the arch of a hybrid with these stages',
    }.items()
}
BLOCK = Pattern('blocks.{i}.{rest}')
ENCODER = (
    'cls_token',
    'dist_token',
    'reg_token',
    'pos_embed',
    'rope',
    'norm_pre',
    'norm',
    'fc_norm',
    'blocks',
    'patch_embed',
)
# Parts of EoMT and PMT, which a checkpoint of an encoder lacks.
ADDED = ('queries', 'decoder')


class Fitting:
    """A checkpoint as the weights of a model. Every key is checked before any tensor is returned.

    Args:
        backbone: the tensors are adapted to its grid, patches and channels.
        targets: the parameters to load, by our names.
        weights: the checkpoint's tensors, by the checkpoint's names.
        skip, source_grid: see :func:`~vit_plugin.models.load_weights`.
        plan: the plan for these weights, if it was chosen before. The weights are then already
            prepared.
        pool: the attention pooling after the backbone, if known.
        complete: whether keys that match no rule are an error too. Otherwise torch reports them.
        numerics: numerics of the model that the weights are of, if its name is known.

    Attributes:
        report: the report on every key.

    Raises:
        ConfigError: see :func:`~vit_plugin.models.load_weights`.
    """

    def __init__(
        self,
        backbone: nn.Module,
        targets: Mapping[str, Any],
        weights: Mapping[str, Tensor],
        skip: Iterable[str] = (),
        source_grid: tuple[int, int] | None = None,
        plan: Plan | None = None,
        pool: AttentionPool | None = None,
        complete: bool = True,
        numerics: Mapping[str, Mapping[str, Any]] = {},
    ) -> None:
        self.backbone, self.targets, self.pool = backbone, targets, pool
        self.weights = weights if plan else prepared(weights)
        self.skip = tuple(map(Pattern, skip))
        self.format, self.prefix, self.steps = plan or choose_format(self.weights, targets)
        self.outside = targets.keys() - backbone.state_dict().keys()
        self.report = Report(self.format.name)
        # Not through self, or a cycle would keep the file open.
        steps, arrays = self.steps, self.weights
        self.adapter = Adapter(
            backbone,
            lambda ours: steps[ours].make(arrays),
            steps.keys(),
            source_grid,
            own=self.format is FORMATS['vit_plugin'],
        )
        surplus = self._account_for_theirs(complete)
        self._account_for_ours()
        if surplus:
            self._reject(surplus)
        self._check_tables()
        self._check_classifiers()
        self._check_heads()
        self._check_shapes()
        self._compare_numerics(numerics)

    def tensor_as_it_is(self, ours: str) -> Tensor:
        """Make one of our tensors from theirs."""
        return self.steps[ours].make(self.weights)

    def tensor(self, ours: str) -> Tensor:
        """Make one of our tensors and adapt it to the model."""
        return self.adapter(ours, self.tensor_as_it_is(ours), self.targets[ours].shape)[0]

    def may_be_left(self, ours: str) -> str:
        """The reason why the model has no parameter of this name. Empty if there is none."""
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
        return any(pattern.match(name) is not None for pattern in self.skip for name in names)

    def _account_for_theirs(self, complete: bool) -> dict[str, str]:
        """Record unused keys and why. Return those that the model's encoder or stem lacks."""
        makes = {key: ours for ours, step in self.steps.items() for key in step.theirs}
        parts = {ours.partition('.')[0] for ours in self.targets}
        surplus = {}
        for key in self.weights:
            ours = makes.get(key, '')
            if ours in self.targets:
                continue
            part = ours.partition('.')[0]
            if self._skipped(key, ours):
                reason = 'skipped'
            elif part in ('head', 'neck') and part not in parts:
                reason = f'the model has no {part}'
            else:
                reason = self.may_be_left(ours) or self.format.why_ignored(key, self.prefix)
            if (
                not reason
                and ours.endswith('bias')
                and not self.steps[ours].make(self.weights).any()
            ):
                reason = f'all zeros, {HARMLESS}'
            self.report.ignored[key] = reason or 'the model has no such parameter'
            theirs = key.startswith(self.prefix) and not key.startswith(self.format.outside or '\0')
            # It may belong to the encoder.
            if not reason and (part in ENCODER or (complete and not part and theirs)):
                surplus[key] = ours
        return surplus

    def _account_for_ours(self) -> None:
        given = {ours.partition('.')[0] for ours in self.steps}
        without_backbone = not self.format.has_backbone and given.isdisjoint(ENCODER)
        missing = []
        for ours in self.targets:
            if ours == GRID:  # known to the model itself
                continue
            part = ours.partition('.')[0]
            if self._skipped(ours):
                self.report.initialised[ours] = 'skipped'
            elif ours in self.steps:
                self.report.matched[ours] = self.steps[ours].theirs
            elif ours.endswith(('.rel_pos_h', '.rel_pos_w')):
                self.report.initialised[ours] = f'relative positions start at zero, {HARMLESS}'
            elif part not in given and (ours in self.outside or part in ADDED or without_backbone):
                self.report.initialised[ours] = f'the checkpoint has no {part}'
            else:
                missing.append(ours)
        if missing:
            near = closest(missing[0], self.report.ignored, most=3, cutoff=0.4)
            raise ConfigError(
                f'The checkpoint (format {self.format.name}) lacks '
                f'{some(missing)}{"; left over in it are " + ", ".join(near) if near else ""}. '
                'Build the model that the checkpoint is of, or name what to leave at its '
                "initialisation with skip=('blocks.11.{rest}', ...) in load_weights or init_cfg."
            )

    def _reject(self, surplus: Mapping[str, str]) -> None:
        groups: dict[str, list[str]] = {}
        for key, ours in surplus.items():
            argument = next(
                (text for pattern, text in ARGUMENTS.items() if pattern.match(ours) is not None), ''
            )
            if _block(ours) >= self.backbone.num_layers:
                argument = 'an arch with more blocks'
            groups.setdefault(argument, []).append(key)
        surplus_keys = '; '.join(
            f'{some(keys)} ('
            + (f'taken with {argument}' if argument else 'taken by no argument')
            + ')'
            for argument, keys in groups.items()
        )
        raise ConfigError(
            f'The checkpoint (format {self.format.name}) has weights that the model lacks, and '
            f'without which it computes something else: {surplus_keys}. Build the model that the '
            'checkpoint is of, or leave them out with load_weights(..., skip=(...)) or skip in '
            'init_cfg.'
        )

    def _check_tables(self) -> None:
        """Compare the tables that the model computes."""
        other = [
            key
            for key, reason in self.report.ignored.items()
            if reason == COMPUTED and not agrees(self.backbone, key, self.weights[key])
        ]
        if other:
            skip = sorted({re.sub(r'\.\d+\.', '.{i}.', key) for key in other})
            raise ConfigError(
                f'{some(other)}: the model computes other rotary positions than the checkpoint '
                'was trained with; set rotary in pos_embed to those, or leave the tables out with '
                f'skip={skip} in load_weights or init_cfg, and fine-tune.'
            )

    def _check_classifiers(self) -> None:
        """Skip a classifier with another number of classes, and note one that is all zeros."""
        for ours in [
            ours
            for ours in self.report.matched
            if ours.startswith(('head.', 'queries.class_head.', 'decode_head.conv_seg.'))
        ]:
            value, target = self.tensor_as_it_is(ours), self.targets[ours]
            if (
                value.ndim
                and value.shape[:1] != target.shape[:1]
                and value.shape[1:] == target.shape[1:]
            ):
                del self.report.matched[ours]
                self.report.initialised[ours] = (
                    f'the checkpoint has {value.shape[0]} classes, the model {target.shape[0]}'
                )
            elif ours.endswith('.weight') and not value.any():
                self.report.notes.append(
                    f'{ours} is all zeros in the checkpoint, which was published without a '
                    'classifier: fine-tune it'
                )

    def _check_heads(self) -> None:
        """Compare the numbers of attention heads. Our shapes do not show them."""
        modules = dict(self.backbone.named_modules())
        for ours in self.report.matched:
            shown = self.steps[ours].heads(self.weights)
            if shown is None:
                continue
            attention = modules.get('.'.join(ours.split('.')[:-2]))
            # A pooling. If it is unknown, it has as many heads as the encoder.
            if not isinstance(attention, Attention):
                attention = self.pool or self.backbone.blocks[0].attn
            if shown != attention.num_heads:
                raise ConfigError(
                    f'{ours}: the checkpoint has {shown} attention heads '
                    f'({self.steps[ours].theirs[0]}), the model {attention.num_heads}; set '
                    f'num_heads={shown} in arch, or in map_cfg of the neck.'
                )

    def _check_shapes(self) -> None:
        for ours in self.report.matched:
            target = self.targets[ours]
            value, how = self.adapter(ours, self.tensor_as_it_is(ours), target.shape)
            kinds = (
                'floating-point' if tensor.is_floating_point() else 'integer'
                for tensor in (target, value)
            )
            for what, wanted, given in (
                ('shape', tuple(target.shape), tuple(value.shape)),
                ('kind of values', *kinds),
            ):
                if wanted != given:
                    raise ConfigError(
                        f'{ours} has the {what} {wanted} in the model and {given} in the '
                        f'checkpoint ({some(self.steps[ours].theirs)}); build the model that the '
                        'checkpoint is of, or leave it at its initialisation with skip=(...).'
                    )
            if how:
                self.report.adapted[ours] = how

    def _compare_numerics(self, named: Mapping[str, Mapping[str, Any]]) -> None:
        """Note differences in the checkpoint's code, above all numerics that certainly differ."""
        state = LazyArrays(list(self.steps), self.tensor_as_it_is)
        self.report.notes += [note for applies, note in self.format.notes if applies(state)]
        found = traits(state)
        hybrid = isinstance(self.backbone.patch_embed, ResNetEmbed)
        claims = [
            claim.numerics
            for claim in self.format.claims
            if claim.having <= found and not claim.lacking & found
        ]
        facts = {
            field: change
            for known in (*claims, named)
            for field, change in known.items()
            if hybrid or not field.startswith('stem')
        }
        # A row is only recommended if everything in it is certain.
        rows = [
            name
            for name, row in NUMERICS.items()
            if 'act_cfg' in facts
            and all(_agrees(row, field, change) for field, change in facts.items())
        ]
        for field, change in facts.items():
            if not _agrees(self.backbone.numerics, field, change):
                advice = f'numerics={rows[0]!r}' if rows else f'{field}={change} in numerics'
                self.report.notes.append(
                    f'the weights are of code with {field}={change}, the model computes with '
                    f'{getattr(self.backbone.numerics, field)}: set {advice}'
                )


def _block(ours: str) -> int:
    """Index of the block that a parameter belongs to, or -1."""
    indices = dict(BLOCK.match(ours) or ())
    return int(indices.get('i', -1))


def _agrees(numerics: Numerics, field: str, change: Mapping[str, Any]) -> bool:
    mine = {'approximate': 'none', **getattr(numerics, field)}  # torch's default GELU
    return all(mine.get(key) == value for key, value in change.items())
