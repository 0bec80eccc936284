"""Check whether pretrained weights are loaded, and what is frozen.

Each public function is a check of :data:`.checks.CHECKS`.
"""

from collections.abc import Iterable
from typing import Any

from mmengine.model.weight_init import PretrainedInit
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading.plan import ENCODER_MODULES, SKIPPED
from vit_plugin.weights.report import Report, shortened_list

from .examined import ExaminedConfig, Faults
from .initialization import InitializedModel
from .named_weights import START_SETTINGS, NamedWeights, short_source

NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm)
# Prefix of the names of heads that read features without the last norm.
NORMLESS_HEAD_PREFIX = 'DPT'
# Parts of the names of LayerScale in our models and in other formats.
LAYER_SCALES = ('.ls', 'gamma', 'layer_scale')
# Weights of a module without a loading report, such as another framework's backbone, count as not
# loaded if it has more random tensors than this share of the number of its matrices. Only matrices
# are surely random at first, since vectors often start as constants.
MAX_RANDOM_SHARE = 0.5


def unloaded_weights(examined: ExaminedConfig) -> Faults:
    """Find weights that cannot be read, are not loaded, or are overwritten by an initialization."""
    for source in examined.sources:
        if source.error:
            yield f'{source.place}: {source.error}', ''
    state = examined.initialized
    if state is None:
        return
    for place, error in state.errors.items():
        yield f'{place}: {error}', ''
    if state.errors:
        return
    for source in examined.sources:
        if source.checkpoint is None or not source.module:
            continue
        if report := state.reports.get(source.place):
            yield from _lost_after_report(source, report, state)
        else:
            yield from _lost_without_report(source, state)
    yield from _start_without_names(examined.sources[-1], state)


def _lost_after_report(source: NamedWeights, report: Report, state: InitializedModel) -> Faults:
    """Find lost tensors of a source whose loading report says which were loaded.

    None of these may be random.
    """
    names = [f'{source.module}.{name}' for name in report.matched]
    lost = [name for name in names if name in state.random_after_init]
    if lost:
        yield _overwritten(source, lost, len(names), state.model)


def _lost_without_report(source: NamedWeights, state: InitializedModel) -> Faults:
    """Find a source without a loading report of which too many tensors are random."""
    parameters = dict(state.model.named_parameters())
    names = [name for name in parameters if source.covers(name)]
    lost = [name for name in names if name in state.random_after_init]
    matrices = [name for name in names if parameters[name].ndim > 1]
    if not lost or len(lost) <= MAX_RANDOM_SHARE * len(matrices):
        return
    # timm's own weights (`pretrained`) have the model's names, so they were overwritten.
    if _other_initializations(state.model, source.module) or source.entry.get('pretrained'):
        yield _overwritten(source, lost, len(names), state.model)
    else:
        yield (
            f'{source.place}: {short_source(source.name)} has few of the names of '
            f'model.{source.module}, so that {len(lost)} of its {len(names)} tensors are '
            f'random ({shortened_list(lost)})',
            'give weights by the names of this class, or take a backbone of vit_plugin, '
            'which reads other names',
        )


def _start_without_names(start: NamedWeights, state: InitializedModel) -> Faults:
    """Find a ``load_from`` or ``begin_from``, which is the last source, that loaded nothing."""
    if start.place not in START_SETTINGS or not start.checkpoint:
        return
    still_random = state.random_after_load
    backbone = {name for name in still_random if name.startswith('backbone.')}
    # The same parameters are random as before, so nothing was loaded.
    if state.random_after_init and not state.random_after_init - still_random:
        yield _no_start(start, 'the model')
    elif backbone and backbone == {
        name for name in state.random_after_init if name.startswith('backbone.')
    }:
        yield _no_start(start, 'the backbone')


def _overwritten(
    source: NamedWeights, lost: list[str], total: int, model: nn.Module
) -> tuple[str, str]:
    """The finding that ``lost`` tensors of a source were overwritten."""
    others = _other_initializations(model, source.module)
    cure = 'name the weights in init_cfg of the backbone, which is read last'
    if others:
        cure = f'leave out {", ".join(others)}'
    return (
        f'{source.place}: {len(lost)} of {total} tensors of {short_source(source.name)} are random '
        f'after init_weights ({shortened_list(lost)}), since another initialization comes later',
        cure,
    )


def _no_start(source: NamedWeights, component: str) -> tuple[str, str]:
    """The finding that ``load_from`` has loaded nothing of the model or the backbone."""
    return (
        f'{source.place}: {short_source(source.name)} has no name of a parameter of {component}, '
        'which stays random, and MMEngine only warns',
        "weights of a backbone are named by its init_cfg=dict(type='Pretrained', checkpoint=...)",
    )


def _other_initializations(model: nn.Module, module: str) -> list[str]:
    """The places of ``init_cfg`` of a module and its parents with other entries than weights."""
    places = []
    parts = module.split('.')
    for end in range(len(parts), -1, -1):
        name = '.'.join(parts[:end])
        init_cfg: Any = getattr(model.get_submodule(name), 'init_cfg', None) or []
        entries = [init_cfg] if hasattr(init_cfg, 'keys') else init_cfg
        if any(entry.get('type') not in ('Pretrained', PretrainedInit) for entry in entries):
            places.append('.'.join(filter(None, ('model', name, 'init_cfg'))))
    return places


def replaced_weights(examined: ExaminedConfig) -> Faults:
    """Find weights that ``load_from`` or ``begin_from`` overwrites."""
    state = examined.initialized
    for source in examined.sources:
        names = state.replaced.get(source.place, ()) if state else ()
        if names:
            start = examined.sources[-1]
            yield (
                f'{source.place} and {start.place} both name weights: {len(names)} tensors of '
                f'{short_source(source.name)} are replaced by those of {short_source(start.name)}',
                'leave one of them out',
            )


def skipped_parts(examined: ExaminedConfig) -> Faults:
    """Find parts of an encoder that ``skip`` leaves out although the file has them."""
    for source in examined.sources:
        state = examined.initialized
        report = state.reports.get(source.place) if state else None
        if not report or not source.entry.get('skip'):
            continue
        in_model = [name for name, why in report.initialized.items() if why == SKIPPED]
        in_file = [name for name, why in report.ignored.items() if why == SKIPPED]
        names = [name for name in (*in_model, *in_file) if _is_of_encoder(name)]
        if names:
            description = (
                f'{source.place}.skip={[*source.entry["skip"]]} leaves out {shortened_list(names)} '
                f'of {short_source(source.name)}'
            )
            if any(part in name for name in names for part in LAYER_SCALES):
                description += ', so that the blocks add with another LayerScale'
            yield description, 'build the model that the weights are of, and leave out skip'


def _is_of_encoder(name: str) -> bool:
    """True for a parameter of an encoder, by its name in our models or in other formats."""
    parts = name.split('.')
    if any(part.endswith(('head', 'neck')) for part in parts):
        return False  # such as head.layers.head.weight
    return any(part in ENCODER_MODULES or part in ('layer', 'layers', 'encoder') for part in parts)


def missing_last_norm(examined: ExaminedConfig) -> Faults:
    """Find an encoder without the last norm before a neck or head that has no norm either."""
    model: Any = examined.model
    backbone = getattr(model, 'backbone', None)
    if not isinstance(backbone, VisionTransformer) or not isinstance(backbone.norm, nn.Identity):
        return
    head = next((child for name, child in model.named_children() if name.endswith('head')), None)
    consumer = getattr(model, 'neck', None) or head
    if consumer is None or _has_norm(consumer):
        return
    consumer_class = type(consumer).__name__
    if consumer_class.startswith(NORMLESS_HEAD_PREFIX):
        return
    if sources := examined.find_sources('backbone'):
        yield (
            'model.backbone.encoder.final_norm=False: the features of '
            f'{short_source(sources[0].name)} reach {consumer_class} as they leave the last block, '
            'some of them a hundred times larger than others',
            'leave out final_norm',
        )


def _has_norm(module: nn.Module) -> bool:
    return any(
        isinstance(layer, NORMS) or 'LN' in type(layer).__name__ for layer in module.modules()
    )


def different_numerics(examined: ExaminedConfig) -> Faults:
    """Find weights that were trained with another GELU or eps than the model has."""
    state = examined.initialized
    for source in examined.sources:
        report = state.reports.get(source.place) if state else None
        for difference, cure in report.numerics.items() if report else ():
            yield f'{source.place}: {difference}', cure


def frozen_parameters(examined: ExaminedConfig) -> Faults:
    """Find frozen random parameters of the backbone, and models without trainable parameters."""
    model = examined.model
    if model is None or _is_self_supervised(model):
        return
    parameters = dict(model.named_parameters())
    frozen_names = [name for name, value in parameters.items() if not value.requires_grad]
    if frozen_names and len(frozen_names) == len(parameters):
        yield 'all parameters of the model are frozen', 'unfreeze the head, or a part of the model'
        return
    state = examined.initialized
    # Sources that could not be read here may have any parameter of their module.
    unread = examined.sources
    if state:
        unread = [source for source in examined.sources if source.checkpoint is None]
    random_names = [
        name
        for name in frozen_names
        if name.startswith('backbone.')
        and (state is None or name in state.random_after_load)
        and not _may_have(unread, name)
    ]
    if random_names and not examined.cfg.get('resume'):
        yield (
            f'{len(random_names)} parameters of the backbone are frozen and have random values '
            f'({shortened_list(random_names)})',
            'name their weights (init_cfg, load_from), or let them learn (frozen_stages=-1)',
        )


def _may_have(sources: Iterable[NamedWeights], name: str) -> bool:
    """True if a parameter belongs to the module of one of the sources."""
    return any(source.covers(name) for source in sources)


def _is_self_supervised(model: nn.Module) -> bool:
    """True for a model whose copies and targets are frozen by design."""
    return any(base.__name__ == 'BaseSelfSupervisor' for base in type(model).__mro__)
