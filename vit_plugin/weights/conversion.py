"""A checkpoint read as the weights of a model: its format, and what becomes of every key."""

from collections.abc import Container, Iterable, Mapping
from difflib import get_close_matches

from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .adapt import Adapter
from .formats import FORMATS, unstacked, unwrapped
from .report import Report, some
from .rules import Format, Pattern, Step


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


def of_other_classes(name: str, theirs: Tensor, ours: Tensor) -> str:
    """In words, that a tensor of a head is of a classifier of another number of classes; empty where it is not."""
    if '.head' not in name or theirs.shape[:1] == ours.shape[:1]:
        return ''
    return f'the checkpoint has {theirs.shape[0]} classes, the model {ours.shape[0]}'


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
            elif ours.endswith(('.rel_pos_h', '.rel_pos_w')):
                self.report.initialised[ours] = 'relative positions start at zero, which changes nothing'
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
