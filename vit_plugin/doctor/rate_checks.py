"""Check learning rates, weight decay and schedules."""

from collections.abc import Mapping
from math import log
from typing import Any

from torch import nn

from vit_plugin.suggestions import closest
from vit_plugin.weights.report import shortened_list

from .examined import Examined, Findings
from .named_weights import START_SETTINGS
from .weight_checks import NORMS

DECAYED = ('layer_decay_rate', 'decay_rate', 'layer_decay')  # settings of layer-wise decay
CONSTRUCTOR = 'vit_plugin.LayerDecayOptimWrapperConstructor'
DEFAULT_CONSTRUCTORS = (
    None,
    'DefaultOptimWrapperConstructor',
    'mmengine.DefaultOptimWrapperConstructor',
)
LOWEST = 1e-5  # share of the head's rate; published decays come down to 8e-5 (MAE, H/14: 0.75)
ADAPTIVE = ('Adam', 'Lion', 'Lamb')  # parts of the names of optimizers with normalized steps
MAX_PRETRAINED_LR = 1e-3  # rate of such an optimizer for a pretrained backbone
HALF_LIFE = 40_000  # steps in which a norm without gradients halves; it is 69,000 of ViTDet's
MIN_PREFIX_LETTERS = 5  # letters of a part of a name that is meant by a longer key
WARMUP_FACTOR = 0.5  # a schedule that begins below this factor is a warm-up


def custom_keys(examined: Examined) -> Findings:
    """Find custom_keys that match no parameter."""
    if examined.model is None:
        return
    names = [name for name, _ in examined.model.named_parameters()]
    parts = {part for name in names for part in (*name.split('.'), name)}
    given = (examined.wrapper.get('paramwise_cfg') or {}).get('custom_keys') or {}
    for key, factors in given.items():
        word = key.strip('.').rpartition('.')[2]
        meant = [
            part
            for part in parts
            if len(part) >= MIN_PREFIX_LETTERS and (part in word or word in part)
        ]
        near = meant or closest(word, parts, 3, 0.5)
        # A base config may name tables that few models have, to exempt them from weight decay.
        counts = meant or factors.get('lr_mult', 1.0) != 1.0
        if counts and not any(key in name for name in names):
            yield (
                f'optim_wrapper.paramwise_cfg.custom_keys: no parameter has {key!r} in its name',
                f'the nearest names are {", ".join(sorted(near)[:3])}' if near else 'leave it out',
            )


def layer_decay(examined: Examined) -> Findings:
    """Find a layer decay that is not read, cannot be applied, or freezes the first layers."""
    paramwise = examined.wrapper.get('paramwise_cfg') or {}
    given = [name for name in DECAYED if name in paramwise]
    constructor = examined.wrapper.get('constructor')
    cure = f"set optim_wrapper.constructor='{CONSTRUCTOR}' and paramwise_cfg.layer_decay_rate"
    if given and constructor in DEFAULT_CONSTRUCTORS:
        yield f'optim_wrapper.paramwise_cfg.{given[0]} is read by no constructor', cure
    if examined.optimizer_error:
        yield (
            f'optim_wrapper: {constructor or "the constructor"} does not take this model '
            f'({examined.optimizer_error})',
            cure if given else 'correct its settings',
        )
    rates = [group.rate for group in examined.groups if group.name.startswith('backbone.')]
    highest = max((group.rate for group in examined.groups), default=0)
    if rates and constructor not in DEFAULT_CONSTRUCTORS and 0 < min(rates) < LOWEST * highest:
        yield (
            f'optim_wrapper.paramwise_cfg.{given[0] if given else "..."}: the first layers learn '
            f'at {min(rates) / highest:.0e} of the rate of the head, which is next to nothing',
            'take a decay nearer to 1, such as 0.65 to 0.8 for 12 blocks and 0.8 to 0.9 for 24',
        )


def rate(examined: Examined) -> Findings:
    """Find a learning rate of 0, or one for training from scratch on a pretrained backbone."""
    if examined.groups and not any(group.rate for group in examined.groups):
        yield 'optim_wrapper.optimizer.lr: all parameters have the rate 0', 'give a larger one'
    optimizer = examined.wrapper.get('optimizer') or {}
    kind = str(optimizer.get('type'))
    sources = [
        source for source in examined.find_sources('backbone') if source.at not in START_SETTINGS
    ]
    rates = [group.rate for group in examined.groups if group.name.startswith('backbone.')]
    if (
        sources
        and rates
        and max(rates) > MAX_PRETRAINED_LR
        and any(word in kind for word in ADAPTIVE)
    ):
        yield (
            f'optim_wrapper.optimizer: {kind} moves the pretrained backbone at the rate '
            f'{max(rates):g}, one for SGD or for training from scratch',
            'set lr to 1e-4 to 3e-4 at most, or give the backbone an lr_mult of 0.1 in custom_keys',
        )


def weight_decay(examined: Examined) -> Findings:
    """Find norms, positions or tokens of a pretrained backbone with weight decay."""
    model: Any = examined.model
    if model is None or not examined.find_sources('backbone'):
        return
    norms = {
        f'{name}.weight'
        for name, module in model.named_modules()
        if isinstance(module, NORMS) and name.startswith('backbone.')
    }
    tokens = {
        f'{name}.{inner}'
        for name, module in model.named_modules()
        if name.startswith('backbone') and hasattr(module, 'no_weight_decay')
        for inner in _undecayed(module)
    }
    kind = str((examined.wrapper.get('optimizer') or {}).get('type'))
    decayed = [
        group.name
        for group in examined.groups
        if group.name in norms | tokens and log(2) < HALF_LIFE * group.rate * group.decay
    ]
    if decayed and 'Adam' in kind:
        yield (
            f'optim_wrapper: {len(decayed)} norms, positions or tokens of the pretrained backbone '
            f'decay by half in less than {HALF_LIFE:,} steps ({shortened_list(decayed)})',
            'set paramwise_cfg.norm_decay_mult=0.0, and decay_mult=0.0 in custom_keys for '
            f"pos_embed and cls_token; constructor='{CONSTRUCTOR}' leaves out the latter",
        )


def _undecayed(module: nn.Module) -> set[str]:
    named: Any = module
    return set(named.no_weight_decay())


def schedule(examined: Examined) -> Findings:
    """Find a warm-up that ends after the training."""
    loop = examined.settings.get('train_cfg') or {}
    schedules = examined.settings.get('param_scheduler') or []
    epochs = examined.settings.get('schedule_length') or loop.get('max_epochs')
    iterations = examined.settings.get('schedule_length') or loop.get('max_iters')
    by_epochs = bool(loop.get('max_epochs'))
    for i, one in enumerate([schedules] if isinstance(schedules, Mapping) else schedules):
        warms = one.get('start_factor', one.get('factor', 1.0)) < WARMUP_FACTOR
        if not warms or 'end' not in one or one.get('begin', 0):
            continue
        counts_epochs = one.get('by_epoch', True)
        if by_epochs and not counts_epochs:
            length = _iterations(examined, loop['max_epochs'])
            unit = 'iterations'
        elif by_epochs == counts_epochs:
            length, unit = (epochs, 'epochs') if by_epochs else (iterations, 'iterations')
        else:
            length, unit = None, ''
        if length and one['end'] >= length:
            yield (
                f'param_scheduler.{i}: the warm-up takes {one["end"]} {unit}, and the training '
                f'{length}, so that it never reaches its learning rate',
                f'end it after {max(1, length // 20)} {unit}',
            )


def _iterations(examined: Examined, epochs: int) -> int | None:
    """The length of a run in iterations, if its data are on this machine."""
    data = examined.training_data
    batch = (examined.settings.get('train_dataloader') or {}).get('batch_size', 1)
    return epochs * -(-len(data) // batch) if data is not None else None
