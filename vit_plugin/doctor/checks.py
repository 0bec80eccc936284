"""The table of checks: what each compares, and the symptom of a fault."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import data_checks, map_checks, pixel_checks, rate_checks, weight_checks
from .examined import ExaminedConfig, Faults


class Check(NamedTuple):
    """A check of a config.

    Attributes:
        name: name of the check, as printed and in docs/doctor.md.
        looks_at: what the check compares.
        symptom: what a user sees in training if there is such a fault.
        run: the function: (examined config) -> pairs of a fault and its cure, see
            :data:`.examined.Faults`.
    """

    name: str
    looks_at: str
    symptom: str
    run: Callable[[ExaminedConfig], Faults]


class Finding(NamedTuple):
    """A fault that a check has found. The fields are the keys of ``vit-plugin doctor --json``.

    Attributes:
        check: name of the check.
        symptom: the symptom of the check.
        found: a description of the fault, with its place in the config.
        cure: how to mend it; empty if the description says so itself.
    """

    check: str
    symptom: str
    found: str
    cure: str

    def __str__(self) -> str:
        text = f'{self.check}: {self.found}'
        return f'{text}; {self.cure}' if self.cure else text


CHECKS = (
    Check(
        'model',
        looks_at='whether the model can be built',
        symptom='the training ends before its first step',
        run=map_checks.model_build_error,
    ),
    Check(
        'settings',
        looks_at='names, types and ranges of all other sections',
        symptom='an option has no effect, or the training ends before its first step',
        run=data_checks.invalid_sections,
    ),
    Check(
        'weights',
        looks_at='parameters after init_weights and load_from, and the files that the config names',
        symptom='no better than from scratch',
        run=weight_checks.unloaded_weights,
    ),
    Check(
        'start',
        looks_at='load_from and init_cfg',
        symptom='the run starts from other weights than intended',
        run=weight_checks.replaced_weights,
    ),
    Check(
        'skip',
        looks_at='what init_cfg leaves out of an encoder: LayerScale, norms, positions, tokens',
        symptom='much worse than published',
        run=weight_checks.skipped_parts,
    ),
    Check(
        'last norm',
        looks_at='whether features are normalized as in pre-training',
        symptom='worse than a ResNet, or a loss that is not finite',
        run=weight_checks.missing_last_norm,
    ),
    Check(
        'numerics',
        looks_at='the GELU and eps that the weights were trained with',
        symptom='some tenths of a point less than published',
        run=weight_checks.different_numerics,
    ),
    Check(
        'frozen',
        looks_at='the frozen parameters, and whether they have weights',
        symptom='the loss stays where it begins',
        run=weight_checks.frozen_parameters,
    ),
    Check(
        'pixels',
        looks_at='mean and std of the preprocessor, and those of the weights',
        symptom='worse than published, from the first epoch on',
        run=pixel_checks.wrong_normalization,
    ),
    Check(
        'channels',
        looks_at='the channel order, and that of the weights',
        symptom='some points less than published',
        run=pixel_checks.wrong_color_order,
    ),
    Check(
        'positions',
        looks_at='the size of the position table, and of the images',
        symptom='worse on large images than on small ones',
        run=pixel_checks.stretched_positions,
    ),
    Check(
        'maps',
        looks_at='channels and strides of backbone, neck and head',
        symptom='the training ends, or mAP is 0',
        run=map_checks.mismatched_channels,
    ),
    Check(
        'one resolution',
        looks_at='the strides of feature maps for a pyramid',
        symptom='small and large objects are not found; worse than a ResNet',
        run=map_checks.one_resolution,
    ),
    Check(
        'custom keys',
        looks_at='paramwise_cfg.custom_keys, and the names of parameters',
        symptom='the backbone learns as fast as the head',
        run=rate_checks.unmatched_custom_keys,
    ),
    Check(
        'layer decay',
        looks_at='the learning rate from block to block',
        symptom='worse than published after fine-tuning',
        run=rate_checks.ineffective_layer_decay,
    ),
    Check(
        'learning rate',
        looks_at='the rate of a backbone with weights',
        symptom='the loss rises, or falls to chance and stays there',
        run=rate_checks.unsuitable_learning_rate,
    ),
    Check(
        'weight decay',
        looks_at='norms, positions and tokens of a backbone with weights',
        symptom='some tenths of a point less than published',
        run=rate_checks.decayed_norms,
    ),
    Check(
        'schedule',
        looks_at='the end of the warm-up, and of the training',
        symptom='the loss hardly falls',
        run=rate_checks.unfinished_warm_up,
    ),
    Check(
        'classes',
        looks_at='the classes of the data, of the head and of the validation',
        symptom='mAP is 0, or some classes are never found',
        run=data_checks.mismatched_classes,
    ),
    Check(
        'batch',
        looks_at='the labels of the first batches',
        symptom='accuracy at chance: each batch unlearns the one before',
        run=data_checks.single_class_batches,
    ),
    Check(
        'validation',
        looks_at='the annotations of the metric, and those of the images',
        symptom='mAP is 0',
        run=data_checks.mismatched_annotations,
    ),
)


def diagnose(examined: ExaminedConfig) -> Iterator[Finding]:
    """Run the checks of :data:`CHECKS` in their order.

    If the model cannot be built, the first check reports it, and the others that need the model
    find nothing.
    """
    for check in CHECKS:
        for description, cure in check.run(examined):
            yield Finding(
                check.name, check.symptom, ' '.join(description.split()).rstrip('.'), cure
            )
