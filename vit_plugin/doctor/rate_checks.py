"""Check learning rates, weight decay and schedules.

Each public function is a check of :data:`.checks.CHECKS`.
"""

from collections.abc import Mapping
from math import ceil, log
from typing import Any

from vit_plugin.suggestions import closest
from vit_plugin.weights.report import shortened_list

from .examined import ExaminedConfig, Faults
from .named_weights import START_SETTINGS
from .weight_checks import NORMS

LAYER_DECAY_SETTINGS = ('layer_decay_rate', 'decay_rate', 'layer_decay')
CONSTRUCTOR = 'vit_plugin.LayerDecayOptimWrapperConstructor'
DEFAULT_CONSTRUCTORS = (
    None,
    'DefaultOptimWrapperConstructor',
    'mmengine.DefaultOptimWrapperConstructor',
)
# Smallest share of the head's rate that a first layer may have. Published layer decays come down to
# 8e-5 (MAE, H/14: 0.75).
MIN_RATE_SHARE = 1e-5
ADAPTIVE = ('Adam', 'Lion', 'Lamb')  # parts of the names of optimizers with normalized steps
# Parts of the names of optimizers whose weight decay is decoupled from the gradient.
DECOUPLED = ('AdamW', 'FusedAdam', 'Lion', 'Muon')
MAX_PRETRAINED_LR = 1e-3  # largest rate of such an optimizer for a pretrained backbone
# Weight decay must not halve a parameter without gradients in fewer steps than this. With the rate
# and decay of ViTDet, it takes 69,000.
MIN_HALF_LIFE = 40_000
MIN_PART_LETTERS = 5  # a misspelled key is not compared with shorter parts of names
WARMUP_FACTOR = 0.5  # a schedule that begins below this factor is a warm-up
# MMEngine's default of the first factor, by the class of the schedule; others count as 1.
DEFAULT_FACTORS = {'LinearLR': 1 / 3, 'ConstantLR': 1 / 3}


def unmatched_custom_keys(examined: ExaminedConfig) -> Faults:
    """Find custom_keys that match no parameter."""
    if examined.model is None:
        return
    names = [name for name, _ in examined.model.named_parameters()]
    parts = {part for name in names for part in (*name.split('.'), name)}
    keys = (examined.optim_wrapper.get('paramwise_cfg') or {}).get('custom_keys') or {}
    for key, factors in keys.items():
        last_part = key.strip('.').rpartition('.')[2]
        overlapping = [
            part
            for part in parts
            if len(part) >= MIN_PART_LETTERS and (part in last_part or last_part in part)
        ]
        near = overlapping or closest(last_part, parts, 3, cutoff=0.5)
        # A key that resembles no parameter and only exempts from weight decay may be meant for
        # other models, in a base config.
        lr_mult = factors.get('lr_mult', 1.0) if isinstance(factors, Mapping) else 1.0
        is_suspicious = overlapping or lr_mult != 1.0
        if is_suspicious and not any(key in name for name in names):
            yield (
                f'optim_wrapper.paramwise_cfg.custom_keys: no parameter has {key!r} in its name',
                f'the nearest names are {", ".join(sorted(near)[:3])}' if near else 'leave it out',
            )


def ineffective_layer_decay(examined: ExaminedConfig) -> Faults:
    """Find a layer decay that is not read, cannot be applied, or freezes the first layers."""
    paramwise = examined.optim_wrapper.get('paramwise_cfg') or {}
    setting = next((name for name in LAYER_DECAY_SETTINGS if name in paramwise), None)
    constructor = examined.optim_wrapper.get('constructor')
    cure = f"set optim_wrapper.constructor='{CONSTRUCTOR}' and paramwise_cfg.layer_decay_rate"
    if setting and constructor in DEFAULT_CONSTRUCTORS:
        yield f'optim_wrapper.paramwise_cfg.{setting}: the default constructor ignores it', cure
    if examined.optimizer_error:
        yield (
            f'optim_wrapper: {constructor or "the constructor"} does not take this model '
            f'({examined.optimizer_error})',
            cure if setting else 'correct its settings',
        )
    rates = [
        parameter.rate
        for parameter in examined.parameter_settings
        if parameter.name.startswith('backbone.')
    ]
    lowest = min(filter(None, rates), default=0)
    highest = max((parameter.rate for parameter in examined.parameter_settings), default=0)
    if constructor not in DEFAULT_CONSTRUCTORS and 0 < lowest < MIN_RATE_SHARE * highest:
        yield (
            f'optim_wrapper.paramwise_cfg.{setting or "..."}: the first layers learn at '
            f'only {lowest / highest:.0e} of the rate of the head',
            'give a decay closer to 1, such as 0.65 to 0.8 for 12 blocks and 0.8 to 0.9 for 24',
        )


def unsuitable_learning_rate(examined: ExaminedConfig) -> Faults:
    """Find a learning rate of 0, or one for training from scratch on a pretrained backbone."""
    if examined.parameter_settings and not any(
        parameter.rate for parameter in examined.parameter_settings
    ):
        yield 'optim_wrapper.optimizer.lr: all parameters have the rate 0', 'give a larger one'
    type_name = str(examined.optimizer.get('type'))
    # A trained model that a run starts from may have been trained at this rate.
    sources = [
        source for source in examined.find_sources('backbone') if source.place not in START_SETTINGS
    ]
    rates = [
        parameter.rate
        for parameter in examined.parameter_settings
        if parameter.name.startswith('backbone.')
    ]
    if (
        sources
        and rates
        and max(rates) > MAX_PRETRAINED_LR
        and any(word in type_name for word in ADAPTIVE)
    ):
        yield (
            f'optim_wrapper.optimizer: {type_name} moves the pretrained backbone at the rate '
            f'{max(rates):g}, which suits SGD or training from scratch',
            'set lr to 1e-4 to 3e-4 at most, or give the backbone an lr_mult of 0.1 in custom_keys',
        )


def decayed_norms(examined: ExaminedConfig) -> Faults:
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
        for inner in module.no_weight_decay()
    }
    type_name = str(examined.optimizer.get('type'))
    is_decoupled = examined.optimizer.get('decoupled_weight_decay') or any(
        word in type_name for word in DECOUPLED
    )
    decayed = [
        parameter.name
        for parameter in examined.parameter_settings
        if parameter.name in norms | tokens
        # A step multiplies by 1 - rate * decay, so the half-life is log(2) / (rate * decay) steps.
        and log(2) < MIN_HALF_LIFE * parameter.rate * parameter.decay
    ]
    if decayed and is_decoupled:
        yield (
            f'optim_wrapper: {len(decayed)} norms, positions or tokens of the pretrained backbone '
            f'decay by half in fewer than {MIN_HALF_LIFE:,} steps ({shortened_list(decayed)})',
            'set paramwise_cfg.norm_decay_mult=0.0, and decay_mult=0.0 in custom_keys for '
            f"pos_embed and cls_token; constructor='{CONSTRUCTOR}' exempts the latter itself",
        )


def unfinished_warm_up(examined: ExaminedConfig) -> Faults:
    """Find a warm-up at the start that does not end before the training."""
    loop = examined.cfg.get('train_cfg') or {}
    schedules = examined.cfg.get('param_scheduler') or []
    run_by_epoch = bool(loop.get('max_epochs'))
    # With `schedule_length`, the schedules are written for that length, and the runner scales them
    # to its own.
    run_length: Any = examined.cfg.get('schedule_length') or loop.get(
        'max_epochs' if run_by_epoch else 'max_iters'
    )
    if not isinstance(run_length, int):
        return
    for i, scheduler in enumerate([schedules] if isinstance(schedules, Mapping) else schedules):
        if not isinstance(scheduler, Mapping):
            continue  # the check of the settings reports it
        class_name = str(scheduler.get('type')).rpartition('.')[2]
        default = DEFAULT_FACTORS.get(class_name, 1.0)
        factor = scheduler.get('start_factor', scheduler.get('factor', default))
        end = scheduler.get('end')
        if not isinstance(factor, (int, float)) or not isinstance(end, (int, float)):
            continue
        if factor >= WARMUP_FACTOR or scheduler.get('begin', 0):
            continue
        by_epoch = scheduler.get('by_epoch', True)
        if run_by_epoch and by_epoch:
            length, unit = run_length, 'epochs'
        elif run_by_epoch and examined.cfg.get('schedule_length'):
            continue  # the runner limits such a warm-up to half of the run
        elif run_by_epoch:
            length, unit = _iterations(examined, run_length), 'iterations'
        elif not by_epoch:
            length, unit = run_length, 'iterations'
        else:  # a schedule in epochs, for a run that counts iterations
            continue
        if length and end >= length:
            yield (
                f'param_scheduler.{i}: the warm-up takes {end} {unit}, and the '
                f'training {length}, so that it never reaches its learning rate',
                f'end it after {max(1, length // 20)} {unit}',
            )


def _iterations(examined: ExaminedConfig, epochs: int) -> int | None:
    """The length of a run in iterations, if its data are on this machine."""
    data = examined.training_data
    batch = (examined.cfg.get('train_dataloader') or {}).get('batch_size') or 1
    # A stream of images has no length.
    return epochs * ceil(len(data) / batch) if hasattr(data, '__len__') else None
