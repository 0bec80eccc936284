"""Which flags of a command need or exclude each other: one table, checked before data is read.

The table also makes a part of docs/tools.md, see :func:`rules_as_markdown`.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.files.untrusted_text import markdown_table
from vit_plugin.from_folder.choices import CONTINUATIONS, TASK_FLAGS, TASK_OPTIONS, TASKS
from vit_plugin.suggestions import alternatives

LEAVE_OUT = 'leave it out'
# Positional arguments as the help shows them. The `picture` of `visualize` is shown by its value.
POSITIONALS = dict(
    config='CONFIG', checkpoint='CHECKPOINT', images='IMAGE', pattern='NAME', picture=''
)


class FlagRule(NamedTuple):
    """Flags that each need one of ``others``, or exclude all of them.

    Attributes:
        flags, others: options such as ``'--data'``, or names of positional arguments. Values may
            follow, as in ``'--task detection|instance'``, also with ``*``; after ``--cfg-options``
            they are names of settings. An empty value, as in ``'--task detection|'``, also matches
            a call without the flag, where ``detection`` is its default.
        excludes: whether none of the others may be given. Otherwise one of them must be.
        remedy: the end of the error's sentence.
    """

    flags: tuple[str, ...]
    others: tuple[str, ...]
    excludes: bool
    remedy: str


def needs(flags: str, others: str, remedy: str = LEAVE_OUT) -> FlagRule:
    """Each flag has an effect only with one of the others. Commas separate names."""
    return FlagRule(
        tuple(flags.split(', ')), tuple(others.split(', ')), excludes=False, remedy=remedy
    )


def excludes(flags: str, others: str, remedy: str = 'leave one of them out') -> FlagRule:
    """No flag goes with any of the others. Commas separate names."""
    return FlagRule(
        tuple(flags.split(', ')), tuple(others.split(', ')), excludes=True, remedy=remedy
    )


def find_task_rules() -> Iterator[FlagRule]:
    """The rules for the flags of ``vit-plugin train`` that only some tasks take."""
    for flag, (tasks, remedy) in TASK_FLAGS.items():
        by_default = '|' if TASKS[0] in tasks else ''  # the first task is the default of --task
        option = f'--{flag.replace("_", "-")}'
        yield needs(option, f'--task {"|".join(tasks)}{by_default}', remedy)


CONFIG_OR_ARCH = excludes('--config', '--arch', 'both say what the model is; give one of them')
# Each flag excludes the setting of --cfg-options that it sets itself.
RUN_RULES = (
    excludes('--work-dir', '--cfg-options work_dir'),
    excludes('--launcher', '--cfg-options launcher'),
    excludes('--no-pin-memory', '--cfg-options *.pin_memory'),
)
TRAINING_RULES = (
    *RUN_RULES,
    excludes('--amp', '--cfg-options optim_wrapper.type'),
    excludes('--resume', '--cfg-options resume'),
    excludes('--resume-changed', '--cfg-options resume_changed'),
    excludes('--epochs', '--cfg-options train_cfg.max_epochs'),
    excludes('--batch-size', '--cfg-options train_dataloader.batch_size'),
)
# Flags of ``train`` that only some tasks take, each with a comma after it.
TASK_OPTION_FLAGS = ''.join(f'--{name.replace("_", "-")}, ' for name in TASK_OPTIONS)
# The pictures of `visualize` that need images.
PICTURES_OF_IMAGES = 'attention|rollout|cam|distance|features'

RULES: dict[str, tuple[FlagRule, ...]] = {
    'train': (
        excludes('config', '--data', 'both say what to train; give one of them'),
        needs(
            '--task, --model, --arch, --weights, --teacher, --epochs, --batch-size, --img-size, '
            '--no-flip, --balance, --augment, --skip-invalid, --layout, '
            f'{TASK_OPTION_FLAGS}--tiles, --check, --patience',
            '--data',
            'change a config with --cfg-options, such as train_cfg.max_epochs=10 or '
            'load_from=CHECKPOINT',
        ),
        *find_task_rules(),
        excludes('--patience', '--no-validate', 'it counts validations; leave one of them out'),
        *TRAINING_RULES,
        excludes('--no-validate', '--cfg-options val_*'),
        excludes('--auto-scale-lr', '--cfg-options auto_scale_lr.enable'),
        excludes('--no-persistent-workers', '--cfg-options *.persistent_workers'),
    ),
    'pretrain': (
        needs('--teacher', '--method distill|', 'a teacher is for nothing else; leave one out'),
        needs('--method distill', '--teacher', 'give the model to learn from'),
        *(
            needs(f'--method {name}', '--weights', 'give the model that it continues')
            for name in CONTINUATIONS
        ),
        *TRAINING_RULES,
    ),
    'test': (
        needs('--out-item', '--out'),
        needs('--interval', '--show, --show-dir'),
        needs('--wait-time', '--show'),
        *RUN_RULES,
    ),
    'probe': (
        needs('--shots', '--probes fewshot|'),
        needs('--seeds', '--probes fewshot|'),
        needs('--checkpoint', 'checkpoint', 'give the folder of the run'),
        excludes('--work-dir', '--cfg-options work_dir'),
        excludes('--no-pin-memory', '--cfg-options *.pin_memory'),
    ),
    'infer': (
        CONFIG_OR_ARCH,
        excludes(
            '--demo',
            'checkpoint, images, --checkpoint, --config, --arch, --device, --cfg-options, --slices',
            'it has a model and images of its own; leave it out',
        ),
        excludes(
            '--about',
            'images, --demo, --out, --score-thr, --slices, --batch-size, --config, --arch, '
            '--device, --cfg-options',
            'it reads what the file says; leave it out',
        ),
        excludes(
            '--checkpoint, --config, --arch, --device, --cfg-options',
            'checkpoint *.onnx|*.xml',
            'the file has all of it; leave it out',
        ),
    ),
    'embed': (CONFIG_OR_ARCH,),
    'demo': (CONFIG_OR_ARCH,),
    'visualize': (
        CONFIG_OR_ARCH,
        needs(f'picture {PICTURES_OF_IMAGES}', 'images', 'give at least one'),
        excludes('images', 'picture posembed', 'it shows the model alone; leave them out'),
        needs('--img-size', f'picture {PICTURES_OF_IMAGES}'),
        needs('--blocks', 'picture attention|rollout'),
        needs('--heads', 'picture attention'),
        needs('--class', 'picture cam'),
    ),
    'convert': (
        excludes(
            '--to, --num-heads, --dtype, --license, --private',
            '--into',
            'the names and types are those of the file; leave it out',
        ),
        needs('--num-heads', '--to jax'),
        needs('--private', '--out hf://*'),
        excludes('--dtype bfloat16', '--out *.npz', 'numpy has no such type; give another'),
    ),
    'export': (
        excludes('--img-size', '--dynamic all'),
        needs('--dtype bfloat16', '--out *.pt2', 'give a file of that kind, or another type'),
        needs('--dtype float16', '--out *.onnx|*.xml', 'give a file of that kind, or another type'),
        needs('--dtype int8', '--out *.onnx', 'give a file of that kind, or another type'),
    ),
    'zoo': (
        excludes('--pretrained', '--licenses, --as-config, --detectors'),
        excludes('--licenses', '--as-config, --detectors'),
        excludes('--as-config', '--detectors'),
        needs('--as-config', 'pattern', 'give one'),
    ),
}


def given_flags(parser: argparse.ArgumentParser, words: Sequence[str]) -> set[str]:
    """The names that a command line sets itself, as opposed to defaults.

    This removes the parser's defaults, so parse the arguments before.
    """
    parser._defaults.clear()
    for action in parser._actions:
        action.default = argparse.SUPPRESS
    return {*vars(parser.parse_args(words))}


def check_rules(
    rules: Sequence[FlagRule], parser: argparse.ArgumentParser, args: argparse.Namespace
) -> None:
    """Raise a ``ConfigError`` for the first rule that the arguments break.

    Args:
        rules: the rules of the command.
        parser: its parser.
        args: the arguments. ``args.given`` are the names from :func:`given_flags`.
    """
    dests = {name: action.dest for action in parser._actions for name in action.option_strings}

    def holds(text: str) -> bool:
        """True if a flag of a rule is given, with one of its values if it has any."""
        name, _, patterns = text.partition(' ')
        dest = dests.get(name, name)
        if dest not in args.given:
            return patterns.endswith('|')
        return not patterns or _matches(getattr(args, dest), patterns.split('|'))

    def as_given(text: str) -> str:
        """A flag of a rule as a message shows it: with its actual value, if the rule has values."""
        name, _, patterns = text.partition(' ')
        value = getattr(args, dests.get(name, name), None)
        return flag_text(f'{name} {value}' if patterns and isinstance(value, str | Path) else text)

    for rule in rules:
        flag = next(filter(holds, rule.flags), None)
        others = list(filter(holds, rule.others))
        if flag and rule.excludes and others:
            raise ConfigError(
                f'{as_given(flag)} does not go with {as_given(others[0])}; {rule.remedy}.'
            )
        if flag and not (rule.excludes or others):
            needed = alternatives(map(flag_text, rule.others))
            raise ConfigError(f'{as_given(flag)} needs {needed}; {rule.remedy}.')


def _matches(value: Any, patterns: Sequence[str]) -> bool:
    """True if a value, an item of a list or the name of a setting matches one of these patterns."""
    values = value if isinstance(value, (list, tuple, Mapping)) else [value]
    return any(fnmatchcase(str(item).lower(), pattern) for item in values for pattern in patterns)


def flag_text(text: str) -> str:
    """A flag of the table as a user writes it."""
    name, _, patterns = text.partition(' ')
    values = alternatives(patterns.rstrip('|').split('|'))
    setting = '=...' if name == '--cfg-options' and values else ''
    return f'{POSITIONALS.get(name, name)} {values}{setting}'.strip()


def rules_as_markdown() -> str:
    """The rules as the table in docs/tools.md."""
    commands: dict[FlagRule, list[str]] = {}
    for command, rules in RULES.items():
        for rule in rules:
            commands.setdefault(rule, []).append(f'`{command}`')
    rows = [['command', 'flag', 'goes']]
    for rule, names in commands.items():
        others = alternatives(f'`{flag_text(other)}`' for other in rule.others)
        flags = ', '.join(f'`{flag_text(flag)}`' for flag in rule.flags)
        rows.append(
            [', '.join(names), flags, f'{"not" if rule.excludes else "only"} with {others}']
        )
    return markdown_table(rows)
