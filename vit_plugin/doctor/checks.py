"""The table of checks: what each compares, and the symptom of a fault."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import data_checks, map_checks, pixel_checks, rate_checks, weight_checks
from .examined import Examined, Findings


class Check(NamedTuple):
    """A check.

    Attributes:
        name: name of the check.
        looks_at: what the check compares.
        symptom: the symptom of a fault in training.
        run: (examined config) -> pairs of a fault and its remedy.
    """

    name: str
    looks_at: str
    symptom: str
    run: Callable[[Examined], Findings]


class Finding(NamedTuple):
    """A fault.

    Attributes:
        check: name of the check that found it.
        symptom: its symptom.
        found: a description, with the place in the config.
        cure: the remedy.
    """

    check: str
    symptom: str
    found: str
    cure: str

    def __str__(self) -> str:
        return f'{self.check}: {self.found}' + (f'; {self.cure}' if self.cure else '')


CHECKS = (
    Check(
        'model',
        'whether the model can be built',
        'the training ends before its first step',
        map_checks.built,
    ),
    Check(
        'settings',
        'names, types and ranges of all other sections',
        'an option has no effect, or the training ends before its first step',
        data_checks.settings,
    ),
    Check(
        'weights',
        'parameters after init_weights and load_from, and the files that the config names',
        'no better than from scratch',
        weight_checks.arrive,
    ),
    Check(
        'start',
        'load_from and init_cfg',
        'other weights than those that were meant',
        weight_checks.replaced,
    ),
    Check(
        'skip',
        'what init_cfg leaves out of an encoder: LayerScale, norms, positions, tokens',
        'much worse than published',
        weight_checks.skipped,
    ),
    Check(
        'last norm',
        'whether features are normed as in pre-training',
        'worse than a ResNet, or a loss that is not finite',
        weight_checks.last_norm,
    ),
    Check(
        'numerics',
        'the GELU and eps of the code that the weights are of',
        'some tenths of a point less than published',
        weight_checks.numerics,
    ),
    Check(
        'frozen',
        'what does not learn, and whether it has weights',
        'the loss stays where it begins',
        weight_checks.frozen,
    ),
    Check(
        'pixels',
        'mean and deviation of the preprocessor, and those of the weights',
        'worse than published, from the first epoch on',
        pixel_checks.normalization,
    ),
    Check(
        'channels',
        'the order of the colors that the weights have seen',
        'some points less than published',
        pixel_checks.order,
    ),
    Check(
        'positions',
        'the size of the position table, and of the images',
        'worse on large images than on small ones',
        pixel_checks.positions,
    ),
    Check(
        'maps',
        'channels and strides of backbone, neck and head',
        'the training ends, or mAP is 0',
        map_checks.fit,
    ),
    Check(
        'one resolution',
        'the strides of maps that a pyramid takes',
        'small and large objects are not found; worse than a ResNet',
        map_checks.one_resolution,
    ),
    Check(
        'custom keys',
        'paramwise_cfg.custom_keys, and the names of parameters',
        'the backbone learns as fast as the head',
        rate_checks.custom_keys,
    ),
    Check(
        'layer decay',
        'the learning rate from block to block',
        'worse than published after fine-tuning',
        rate_checks.layer_decay,
    ),
    Check(
        'learning rate',
        'the rate of a backbone with weights',
        'the loss rises, or falls to chance and stays there',
        rate_checks.rate,
    ),
    Check(
        'weight decay',
        'norms, positions and tokens of a backbone with weights',
        'some tenths of a point less than published',
        rate_checks.weight_decay,
    ),
    Check(
        'schedule',
        'the end of the warm-up, and of the training',
        'the loss hardly falls',
        rate_checks.schedule,
    ),
    Check(
        'classes',
        'the classes of the data, of the head and of the validation',
        'mAP is 0, or some classes are never found',
        data_checks.classes,
    ),
    Check(
        'batch',
        'the labels of the first batches',
        'accuracy at chance: each batch unlearns the one before',
        data_checks.one_class,
    ),
    Check(
        'validation',
        'the annotations of the metric, and those of the images',
        'mAP is 0',
        data_checks.validation,
    ),
)


def diagnose(examined: Examined) -> Iterator[Finding]:
    """Run the checks of :data:`CHECKS` in their order.

    If the model cannot be built, the first check reports it, and the others that need the model
    find nothing.
    """
    for check in CHECKS:
        for description, cure in check.run(examined):
            yield Finding(
                check.name, check.symptom, ' '.join(description.split()).rstrip('.'), cure
            )
