"""Loading a checkpoint of any format into a model, exactly and completely, or not at all."""

from collections.abc import Container, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .adapt import Adapter
from .formats import FORMATS, unstacked, unwrapped
from .report import Report, some
from .rules import Format, Pattern, Step
from .sources import open_weights


def load_weights(model: nn.Module, source: str | Path | Mapping[str, Tensor], skip: Iterable[str] = (),
                 source_grid: tuple[int, int] | None = None) -> Report:
    """Fill a backbone, or a classifier, detector or segmentor that holds one, from a checkpoint.

    Args:
        model: the model; its own names decide what fits.
        source: a path, ``http(s)://``, ``timm://<model>`` or ``hf://<org>/<model>``, or the tensors by name, in any
            format of :data:`~vit_plugin.weights.formats.FORMATS`.
        skip: patterns of our keys to leave as they are, such as ``'head.{rest}'``.
        source_grid: the grid (h, w) of the checkpoint's position table, where it is no square.

    Returns:
        What became of every key; print it.

    Raises:
        ConfigError: if the source cannot be read, its format is not known, or a key that the model needs is missing
            or misshaped. The model is then as it was.
    """
    weights = source if isinstance(source, Mapping) else open_weights(source)
    prefix, backbone = find_backbone(model)
    targets = {key.removeprefix(prefix): value for key, value in model.state_dict(keep_vars=True).items()}
    conversion = Conversion(backbone, targets, weights, skip, source_grid)
    with torch.no_grad():
        for ours in conversion.report.matched:
            targets[ours].copy_(conversion.tensor(ours))
    return conversion.report


def fit_state_dict(backbone: nn.Module, state: dict[str, Tensor], prefix: str) -> None:
    """Put a state dict, in place, into the names and shapes of a backbone that is about to load it.

    What already has our names is adapted only, and its completeness left to whoever loads it. What does not is
    converted, and must be complete. Other modules' entries, outside of ``prefix``, stay as they are.
    """
    mine = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
    targets = backbone.state_dict(keep_vars=True)
    if not mine or (set(mine) <= set(targets) and all(mine[key].shape == targets[key].shape for key in mine)):
        return
    if set(mine) <= set(targets):
        targets = {key: targets[key] for key in mine}
    conversion = Conversion(backbone, targets, mine)
    print_log(f'{conversion.report}', 'current')
    for key in mine:
        del state[f'{prefix}{key}']
    state.update({f'{prefix}{ours}': conversion.tensor(ours) for ours in conversion.report.matched})


def fit_classifier_state_dict(backbone: nn.Module, state: dict[str, Tensor], prefix: str) -> None:
    """Put the state dict of a whole classifier of another format, in place, into MMPretrain's parts.

    The names are ``backbone.``, ``neck.`` and ``head.`` after the prefix of the classifier; what has our names already
    is left alone, and so are other modules' entries.
    """
    mine = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
    targets = backbone.state_dict(keep_vars=True)
    if not mine or any(f'backbone.{key}' in mine for key in targets):
        return
    weights = unstacked(unwrapped(mine))
    try:
        steps = choose_format(weights, targets)[2]
    except ConfigError:
        return  # nothing of it is for the backbone, such as a head's weights alone, which torch can load
    # The backbone cannot know the shapes of what follows it: that is passed on as it is.
    others = {ours: step.make(weights) for ours, step in steps.items() if ours.startswith(('neck.', 'head.'))}
    conversion = Conversion(backbone, targets | others, mine)
    if others:
        conversion.report.notes.append(f'{some(others)} are for the neck and head, and unused if the model has none')
    print_log(f'{conversion.report}', 'current')
    for key in mine:
        del state[f'{prefix}{key}']
    state.update({f'{prefix}{ours if ours in others else f"backbone.{ours}"}': conversion.tensor(ours)
                  for ours in conversion.report.matched})


def fit_head_state_dict(head: nn.Module, state: dict[str, Tensor], prefix: str) -> None:
    """Keep, in place, a head's own classifier in a state dict where that is of another number of classes.

    That is printed, and what the state dict lacks, or has and the head lacks; whether these are errors is left to
    whoever loads.
    """
    targets = head.state_dict()
    report = Report(FORMATS['vit_plugin'].name)
    if not any(f'{prefix}{key}' in state for key in targets):
        report.initialised = dict.fromkeys((f'head.{key}' for key in targets), 'the checkpoint has no head')
    for name in [name for name in state if name.startswith(prefix)]:
        key = name.removeprefix(prefix)
        if key not in targets:
            report.ignored[f'head.{key}'] = 'the model has no such parameter'
        elif reason := of_other_classes(key, state[name], targets[key]):
            report.initialised[f'head.{key}'] = reason
            state[name] = targets[key]
    if report.initialised or report.ignored:
        print_log(f'{report}', 'current')


def of_other_classes(name: str, theirs: Tensor, ours: Tensor) -> str:
    """In words, that a tensor of a head is of a classifier of another number of classes; empty where it is not."""
    if 'pre_logits' in name or theirs.shape[0] == ours.shape[0]:
        return ''
    return f'the checkpoint has {theirs.shape[0]} classes, the model {ours.shape[0]}'


def find_backbone(model: nn.Module) -> tuple[str, nn.Module]:
    """The one backbone of ours inside a model, and what precedes its parameters' names.

    Raises:
        ConfigError: if there is none, or more than one.
    """
    found = [(f'{name}.' if name else '', module) for name, module in model.named_modules()
             if hasattr(module, 'patch_embed') and hasattr(module, 'position')]
    if len(found) != 1:
        raise ConfigError('load_weights wants a model with one vit_plugin.VisionTransformer, and '
                          f'{type(model).__name__} has {len(found)}.')
    return found[0]


def in_our_names(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Format]:
    """The weights of any format under our names, with no model to fit them to, and the format.

    Raises:
        ConfigError: if no format knows them.
    """
    weights = unstacked(unwrapped(weights))
    form, _, steps = choose_format(weights, None)
    return {ours: step.make(weights) for ours, step in steps.items()}, form


def choose_format(weights: Mapping[str, Tensor], targets: Container[str] | None,
                  ) -> tuple[Format, str, dict[str, Step]]:
    """The format and prefix that find most of the targets, and of equals the one that uses most of the weights.

    Raises:
        ConfigError: if none finds any.
    """
    candidates = []
    for form in FORMATS.values():
        for prefix in form.prefixes:
            if any(key.startswith(prefix) for key in weights):
                steps = {step.ours: step for step in form.plan(weights, prefix)}
                found = sum(targets is None or ours in targets for ours in steps)
                used = sum(len(step.theirs) for step in steps.values())
                candidates.append((found if targets is not None else used, used, form, prefix, steps))
    best = max(candidates, default=None, key=lambda candidate: candidate[:2])
    if best is None or not best[0]:
        raise ConfigError(f'The checkpoint is of no known format: none of its keys ({some(weights)}) names a part of '
                          f'the model. Known are {", ".join(FORMATS)}.')
    return best[2:]


class Conversion:
    """A checkpoint read as the weights of a model: every key accounted for before a tensor is touched.

    Args:
        backbone: whose grid, patches and channels the tensors are adapted to.
        targets: the parameters to fill, by our names.
        weights: the checkpoint's tensors, by theirs.
        skip, source_grid: see :func:`load_weights`.

    Attributes:
        steps: how each of our keys is made, whether the model has it or not.
        report: what becomes of every key.

    Raises:
        ConfigError: see :func:`load_weights`.
    """

    def __init__(self, backbone: nn.Module, targets: Mapping[str, Tensor], weights: Mapping[str, Tensor],
                 skip: Iterable[str] = (), source_grid: tuple[int, int] | None = None) -> None:
        self.targets, self.weights = targets, unstacked(unwrapped(weights))
        self.outside = targets.keys() - backbone.state_dict().keys()
        self.format, self.prefix, self.steps = choose_format(self.weights, targets)
        self.report = Report(self.format.name)
        self.adapter = Adapter(backbone, self.tensor_as_it_is, set(self.steps), source_grid,
                               own=self.format is FORMATS['vit_plugin'])
        self._account_for_theirs()
        self._account_for_ours(tuple(map(Pattern, skip)))
        self._check_classifiers()
        self._check_shapes()
        if self.format.numerics is not None:
            self.report.notes += backbone.differing_numerics(self.format.numerics)

    def tensor_as_it_is(self, ours: str) -> Tensor:
        """One tensor of ours, made of theirs."""
        return self.steps[ours].make(self.weights)

    def tensor(self, ours: str) -> Tensor:
        """The same, adapted to the model."""
        value = self.tensor_as_it_is(ours)
        return self.adapter(ours, value, self.targets[ours].shape)[0] if ours in self.targets else value

    def _account_for_theirs(self) -> None:
        makes = {key: ours for ours, step in self.steps.items() for key in step.theirs}
        parts = {ours.partition('.')[0] for ours in self.targets}
        for key in self.weights:
            ours = makes.get(key)
            if ours in self.targets:
                continue
            part = (ours or '').partition('.')[0]
            self.report.ignored[key] = (
                f'the model has no {part}' if part in ('head', 'neck') and part not in parts
                else self.format.why_ignored(key, self.prefix) or 'the model has no such parameter')

    def _account_for_ours(self, skip: tuple[Pattern, ...]) -> None:
        given = {ours.partition('.')[0] for ours in self.steps}
        missing = []
        for ours in self.targets:
            part = ours.partition('.')[0]
            if any(pattern.match(ours) is not None for pattern in skip):
                self.report.initialised[ours] = 'skipped'
            elif ours in self.steps:
                self.report.matched[ours] = self.steps[ours].theirs
            elif part not in given and ours in self.outside:
                self.report.initialised[ours] = f'the checkpoint has no {part}'
            else:
                missing.append(ours)
        if missing:
            near = get_close_matches(missing[0], list(self.report.ignored), n=3, cutoff=0.4)
            raise ConfigError(
                f'The checkpoint (format {self.format.name}) lacks {some(missing)}'
                f'{"; left over in it are " + ", ".join(near) if near else ""}. Build the model that the checkpoint is '
                "of, or name what to leave at its initialisation with skip=('blocks.11.{rest}', ...).")

    def _check_classifiers(self) -> None:
        """Leave a classifier of another number of classes as it is, and name one of zeros."""
        for ours in [ours for ours in self.report.matched if ours.startswith('head.')]:
            value = self.tensor_as_it_is(ours)
            if reason := of_other_classes(ours, value, self.targets[ours]):
                del self.report.matched[ours]
                self.report.initialised[ours] = reason
            elif ours.endswith('.weight') and not value.any():
                self.report.notes.append(f'{ours} is all zeros in the checkpoint, which was published without a '
                                         'classifier: fine-tune it')

    def _check_shapes(self) -> None:
        for ours in self.report.matched:
            wanted = self.targets[ours].shape
            value, how = self.adapter(ours, self.tensor_as_it_is(ours), wanted)
            if value.shape != wanted:
                raise ConfigError(
                    f'{ours} has the shape {tuple(wanted)} in the model and {tuple(value.shape)} in the checkpoint '
                    f'({some(self.steps[ours].theirs)}); build the model that the checkpoint is of, or leave it at its '
                    'initialisation with skip=(...).')
            if how:
                self.report.adapted[ours] = how
