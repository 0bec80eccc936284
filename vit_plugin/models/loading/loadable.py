"""Load a checkpoint of any format into a model, completely or not at all.

All loading goes through ``load_state_dict``. Its hooks adapt the weights to the model, see
:mod:`~vit_plugin.models.loading.hooks`. :func:`load_weights`, MMEngine's ``load_from`` and the
backbone's ``init_cfg`` use it too. So this also works for sharded models and for models on the meta
device.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from torch import Tensor, nn

from vit_plugin.arguments.fields import InitConfig
from vit_plugin.errors import ConfigError, first_line, is_out_of_memory, naming
from vit_plugin.weights.opening import Checkpoint, Source, read_source
from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.recognition import recognize
from vit_plugin.weights.report import Report, shortened_list
from vit_plugin.weights.rules import GRID

from ..layers.attention_pool import AttentionPool
from ..loadable_module import LoadableModule
from ..protocol import Backbone, innermost
from .adapted_weights import AdaptedWeights
from .consistency import compare_named_model
from .hooks import fit_backbone, fit_classifier, shard_like, without_prefix
from .stem_weights import find_stem_weights
from .value_checks import check_finite, check_floating_point


class LoadableBackbone(LoadableModule):
    """Base class of a backbone that loads weights of any known format and resolution.

    Args:
        init_cfg, arch: see :class:`~vit_plugin.models.loadable_module.LoadableModule`.
    """

    added_parts: tuple[str, ...] = ()  # modules of a subclass that an encoder's checkpoint lacks
    added_classifiers: tuple[str, ...] = ()  # prefixes of their classifiers

    def __init__(self, init_cfg: InitConfig = None, arch: Any = None) -> None:
        super().__init__(init_cfg, arch)
        self.arch = arch
        self.register_load_state_dict_pre_hook(fit_backbone)

    def load(
        self, source: Any, skip: Iterable[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Report:
        """Load weights only into the backbone, see :func:`load_weights`.

        ``source_grid`` defaults to the one in the backbone's ``pos_embed``.
        """
        return load_weights(self, source, skip, source_grid)  # the table knows its own default

    def _checkpoint_filter(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        """MMPretrain's hook of its backbone: convert the weights of the complete classifier."""
        fit_classifier(self, state_dict, prefix)


def load_weights(
    model: nn.Module,
    source: Source,
    skip: Iterable[str] = (),
    source_grid: tuple[int, int] | None = None,
) -> Report:
    """Load a checkpoint into a backbone, or a classifier, detector or segmentor that has one.

    Args:
        model: the model. It may be on the meta device. It may also be sharded by ``fully_shard``.
            Then every process must call this function, and each keeps its part.
        source: a path, ``http(s)://``, ``timm://<model>`` or ``hf://<org>/<model>``, or what
            :func:`~vit_plugin.weights.open_checkpoint` opened there, or the tensors by name, in any
            format of :data:`~vit_plugin.weights.FORMATS`.
        skip: patterns of our keys that keep their values, such as ``'head.{rest}'``. Also patterns
            of keys of the checkpoint that are left out, in our names or in its own.
        source_grid: the grid (h, w) of the checkpoint's position table. Only needed if it is not
            square.

    Returns:
        A report on every key. Print it.

    Raises:
        ConfigError: if the source cannot be read, or its format is unknown. Also if a key that the
            model needs is missing or has the wrong shape, or if a key of the checkpoint's encoder
            or stem is not in the model, or if the source names a model of another structure, or if
            a value is infinite or NaN. The model is then as before.
    """
    if isinstance(skip, str):  # its letters would be patterns that match nothing
        raise ConfigError(
            f'load_weights: skip={skip!r} must be a list of patterns; give skip=[{skip!r}].'
        )
    prefix, backbone = find_backbone(model, Backbone)
    if not isinstance(backbone, LoadableBackbone):  # a timm model, which has its own names
        # The head is another module, which this does not load.
        backbone_skip = [pattern for pattern in skip if not pattern.startswith('head.')]
        return backbone.load(source, backbone_skip, source_grid)
    origin, source_weights = read_source(source)
    # The prefix of the classifier, detector or segmentor around the backbone.
    model_prefix = prefix.removesuffix('backbone.')
    state = model.state_dict(keep_vars=True)
    names = {  # our name -> the model's
        name.removeprefix(prefix if name.startswith(prefix) else model_prefix): name
        for name in state
    }
    targets = {ours: state[name] for ours, name in names.items()}
    if of_stem := find_stem_weights(backbone, targets, source_weights):
        if skip or source_grid:
            raise ConfigError(
                'The checkpoint has only the CNN of the stem, for which there is no skip or '
                'source_grid; leave them out.'
            )
        tensors, report = of_stem
        loaded = [*tensors]
        check_finite(tensors.items(), origin)
    else:
        numerics = compare_named_model(backbone, origin)
        pool = next((part for part in model.modules() if isinstance(part, AttentionPool)), None)
        weights = recognize(source_weights, targets)
        tensors = AdaptedWeights(
            backbone, targets, weights, skip, source_grid, pool=pool, numerics=numerics
        )
        report = tensors.report
        loaded = [*report.matched]
        used = report.matched.items()
        check_finite(((ours, weights.theirs[key]) for ours, keys in used for key in keys), origin)
    _load_by_block(model, names, targets, tensors, loaded)
    _note_empty(report, targets)
    return report


def _load_by_block(
    model: nn.Module,
    names: Mapping[str, str],
    targets: Mapping[str, Tensor],
    tensors: Weights,
    loaded: Iterable[str],
) -> None:
    """Load tensors one block at a time, so that the complete file is never in memory.

    Args:
        model: the model.
        names: our name of each of its tensors -> the model's name.
        targets: its tensors, by our names.
        tensors: the values, by our names. Each may be computed on access.
        loaded: our names of the tensors to load.
    """
    # Without its grid, the hook would take a position table as that of a square.
    grid = {names[GRID]: tensors[GRID]} if GRID in tensors else {}
    # The parts of a block have the same first two parts of the name, such as blocks.3. Meta tensors
    # can only be replaced.
    groups = groupby(loaded, lambda ours: (ours.split('.')[:2], targets[ours].is_meta))
    for (_, is_meta), group in groups:
        values = {
            names[ours]: shard_like(tensors[ours], targets[ours], copy=is_meta) for ours in group
        }
        model.load_state_dict(grid | values, strict=False, assign=is_meta)


def _note_empty(report: Report, targets: Mapping[str, Tensor]) -> None:
    """Note the tensors that remain on the meta device after loading."""
    empty = [ours for ours in report.initialized if targets[ours].is_meta]
    if empty:
        report.notes.append(
            f'{shortened_list(empty)} are still on the meta device: give them values'
        )


def load_trained(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Load a checkpoint of the same complete model, to predict with it.

    Raises:
        ConfigError: if a tensor of the model is missing in the checkpoint, or has a different shape
            or kind of values there. Also if a value is infinite or NaN.
    """
    source, weights = checkpoint.source, checkpoint.weights
    check_floating_point(model, weights)
    mismatch = f'The checkpoint {source!r} is not of this model: '
    try:
        with naming(source):
            incompatible = model.load_state_dict(dict(weights), strict=False)
    except RuntimeError as error:  # wrong shapes, one per line after the first
        if is_out_of_memory(error):
            raise
        lines = str(error).splitlines()
        reason = lines[1].strip() if lines[1:] else first_line(error)
        raise ConfigError(mismatch + reason) from error
    if incompatible.missing_keys:
        raise ConfigError(
            f'{mismatch}it lacks {len(incompatible.missing_keys)} of its '
            f'{len(model.state_dict())} tensors, such as {incompatible.missing_keys[0]!r}.'
        )
    check_finite(model.state_dict().items(), source)


def check_start(model: nn.Module, weights: Weights) -> None:
    """Check weights for ``load_from``. MMEngine itself would only print a warning.

    Modules outside our backbones, such as a head, may be missing.

    Raises:
        ConfigError: if the weights do not fit one of our backbones, see :func:`load_weights` and
            :func:`~vit_plugin.models.loading.value_checks.check_floating_point`.
    """
    check_floating_point(model, weights)
    for prefix, backbone in innermost(model, LoadableBackbone).items():
        targets, entries = backbone.state_dict(keep_vars=True), without_prefix(weights, prefix)
        if entries and not targets.keys() <= entries.keys():
            recognized = recognize(entries, targets)
            if recognized.is_own:  # the hook converts weights with other names, completely
                AdaptedWeights(backbone, targets, recognized, complete=False)


def find_backbone(model: nn.Module, kind: type = LoadableBackbone) -> tuple[str, Any]:
    """Find the backbone inside a model. Returns the prefix of its parameters and the backbone.

    Args:
        model: the model.
        kind: class or protocol of the backbone. The default finds a
            :class:`~vit_plugin.models.VisionTransformer` or a subclass of it. The protocol
            :class:`~vit_plugin.models.protocol.Backbone` finds any backbone of ours.

    Raises:
        ConfigError: if there is no such backbone, or more than one.
    """
    backbones = [*innermost(model, kind).items()]  # the innermost of nested ones (ViTAdapter)
    if len(backbones) != 1:
        kinds = 'vit_plugin.VisionTransformer' + (
            ' or vit_plugin.TimmBackbone' if kind is Backbone else ''
        )
        raise ConfigError(
            f'A model with one {kinds} is needed, and {type(model).__name__} has {len(backbones)}; '
            'give another model.'
        )
    return backbones[0]
