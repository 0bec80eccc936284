"""Check whether pretrained weights are loaded, and what is frozen."""

from collections.abc import Iterable
from typing import Any

from mmengine.model.weight_init import PretrainedInit
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading.plan import ENCODER_MODULES
from vit_plugin.weights.report import shortened_list

from .examined import Examined, Findings
from .named_weights import START_SETTINGS, NamedWeights, file_name

NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm)
# Prefixes of head names that read features without the last norm.
HEADS_WITHOUT_NORM = 'DPT'
OTHER_CODE = 'the weights are of code with'  # how a note on numerics begins
PLENTY = 0.5  # share of a foreign module's tensors that must be loaded


def arrive(examined: Examined) -> Findings:
    """Find weights that cannot be read, are not loaded, or are overwritten by an initialization."""
    for source in examined.sources:
        if source.error:
            yield f'{source.at}: {source.error}', ''
    state = examined.initialized
    if state is None:
        return
    for place, error in state.errors.items():
        yield f'{place}: {error}', ''
    if state.errors:
        return
    for source in examined.sources:
        if source.opened is None or not source.module:
            continue
        names = [name for name, value in state.model.named_parameters() if source.has(name)]
        if report := state.reports.get(source.at):
            names = [f'{source.module}.{name}' for name in report.matched]
        lost = [name for name in names if name in state.before]
        matrices = sum(state.model.get_parameter(name).ndim > 1 for name in names if not report)
        if report and lost:
            yield _overwritten(source, lost, len(names), state.model)
        elif lost and len(lost) > PLENTY * matrices:
            if _other_initializations(state.model, source.module) or source.entry.get('pretrained'):
                yield _overwritten(source, lost, len(names), state.model)
            else:
                yield (
                    f'{source.at}: {file_name(source.name)} has few of the names of '
                    f'model.{source.module}, so that {len(lost)} of its {len(names)} tensors are '
                    f'random ({shortened_list(lost)})',
                    'give weights by the names of this class, or take a backbone of vit_plugin, '
                    'which reads other names',
                )
    start = examined.sources[-1]
    if start.at in START_SETTINGS and start.opened:
        backbone = {name for name in state.after if name.startswith('backbone.')}
        if state.before and not state.before - state.after:
            yield _no_start(start, 'the model')
        elif backbone and backbone == {
            name for name in state.before if name.startswith('backbone.')
        }:
            yield _no_start(start, 'the backbone')


def _overwritten(
    source: NamedWeights, lost: list[str], total: int, model: nn.Module
) -> tuple[str, str]:
    others = _other_initializations(model, source.module)
    cure = 'name the weights in init_cfg of the backbone, which is read last'
    if others:
        cure = f'leave out {", ".join(others)}'
    return (
        f'{source.at}: {len(lost)} of {total} tensors of {file_name(source.name)} are random '
        f'after init_weights ({shortened_list(lost)}), since another initialization comes later',
        cure,
    )


def _no_start(source: NamedWeights, what: str) -> tuple[str, str]:
    return (
        f'{source.at}: {file_name(source.name)} has no name of a parameter of {what}, which stays '
        'random, and MMEngine only warns',
        "weights of a backbone are named by its init_cfg=dict(type='Pretrained', checkpoint=...)",
    )


def _other_initializations(model: nn.Module, module: str) -> list[str]:
    """Other initializations of a module and of its parents, by place."""
    places = []
    parts = module.split('.')
    for end in range(len(parts), -1, -1):
        name = '.'.join(parts[:end])
        given: Any = getattr(model.get_submodule(name), 'init_cfg', None) or []
        entries = [given] if hasattr(given, 'keys') else given
        if any(entry.get('type') not in ('Pretrained', PretrainedInit) for entry in entries):
            places.append('.'.join(filter(None, ('model', name, 'init_cfg'))))
    return places


def replaced(examined: Examined) -> Findings:
    """Find weights that ``load_from`` overwrites."""
    state, start = examined.initialized, examined.settings.get('load_from')
    for source in examined.sources:
        names = state.replaced.get(source.at, ()) if state else ()
        if names:
            yield (
                f'{source.at} and load_from both name weights: {len(names)} tensors of '
                f'{file_name(source.name)} are replaced by those of {file_name(str(start))}',
                'leave one of them out',
            )


def skipped(examined: Examined) -> Findings:
    """Find parts of an encoder that ``skip`` leaves out although the file has them."""
    for source in examined.sources:
        state = examined.initialized
        report = state.reports.get(source.at) if state else None
        if not report or not source.entry.get('skip'):
            continue
        lost = [ours for ours, why in report.initialized.items() if why == 'skipped']
        left_out = [key for key, why in report.ignored.items() if why == 'skipped']
        names = [name for name in (*lost, *left_out) if _is_of_encoder(name)]
        if names:
            scale = any('.ls' in name or 'gamma' in name for name in names)
            yield (
                f'{source.at}.skip={[*source.entry["skip"]]} leaves out {shortened_list(names)} of '
                f'{file_name(source.name)}'
                + ', so that the blocks add with another LayerScale'
                * scale,
                'build the model that the weights are of, and leave out skip',
            )


def _is_of_encoder(name: str) -> bool:
    parts = name.split('.')
    return any(part in ENCODER_MODULES or part in ('layer', 'layers', 'encoder') for part in parts)


def last_norm(examined: Examined) -> Findings:
    """Find an encoder without the last norm before components without their own norm."""
    model: Any = examined.model
    backbone = getattr(model, 'backbone', None)
    if not isinstance(backbone, VisionTransformer) or not isinstance(backbone.norm, nn.Identity):
        return
    head = next((part for name, part in model.named_children() if name.endswith('head')), None)
    takes = getattr(model, 'neck', None) or head
    if takes is None or type(takes).__name__.startswith(HEADS_WITHOUT_NORM) or _has_norm(takes):
        return
    if sources := examined.find_sources('backbone'):
        yield (
            'model.backbone.encoder.final_norm=False: the features of '
            f'{file_name(sources[0].name)} reach {type(takes).__name__} as they leave the last '
            'block, some of them a hundred times larger than others',
            'leave out final_norm',
        )


def _has_norm(module: nn.Module) -> bool:
    return any(isinstance(part, NORMS) or 'LN' in type(part).__name__ for part in module.modules())


def numerics(examined: Examined) -> Findings:
    """Find weights that expect another GELU or eps."""
    state = examined.initialized
    for source in examined.sources:
        report = state.reports.get(source.at) if state else None
        for note in report.notes if report else ():
            if note.startswith(OTHER_CODE):
                difference, _, cure = note.partition(': ')
                yield f'{source.at}: {difference}', cure


def frozen(examined: Examined) -> Findings:
    """Find frozen parameters with random values, and models without trainable parameters."""
    model = examined.model
    if model is None or _is_self_supervised(model):
        return
    parameters = dict(model.named_parameters())
    still = [name for name, value in parameters.items() if not value.requires_grad]
    if still and len(still) == len(parameters):
        yield 'all parameters of the model are frozen', 'leave the head, or a part, to learn'
        return
    still = [name for name in still if name.startswith('backbone.')]
    state = examined.initialized
    known = [source for source in examined.sources if source.opened is None]
    if state:
        lost = [name for name in still if name in state.after and not _is_of(known, name)]
    else:
        lost = [name for name in still if not _is_of(examined.sources, name)]
    if lost and not examined.settings.get('resume'):
        yield (
            f'{len(lost)} parameters of the backbone are frozen and have random values '
            f'({shortened_list(lost)})',
            'name their weights (init_cfg, load_from), or let them learn (frozen_stages=-1)',
        )


def _is_of(sources: Iterable[NamedWeights], name: str) -> bool:
    return any(source.has(name) for source in sources)


def _is_self_supervised(model: nn.Module) -> bool:
    """True for a model whose copies and targets are frozen by design."""
    return any(kind.__name__ == 'BaseSelfSupervisor' for kind in type(model).__mro__)
