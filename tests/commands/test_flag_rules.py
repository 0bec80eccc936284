"""The table of flags that need or exclude each other: it equals the docs', and is enforced."""

import argparse
import re
from importlib import import_module
from pathlib import Path

import pytest
from rejection import rejects

from vit_plugin.commands import COMMANDS
from vit_plugin.commands.entry import build_parser
from vit_plugin.commands.flag_rules import (
    RULES,
    TRAINING_RULES,
    FlagRule,
    check_rules,
    flag_text,
    given_flags,
    rules_as_markdown,
)
from vit_plugin.from_folder.choices import METHOD_NAMES, TASK_FLAGS, TASKS

ROWS = [(command, rule) for command in RULES for rule in RULES[command]]
NAMES = [f'{command}-{"/".join(rule.flags)[:40]}' for command, rule in ROWS]


def parser_by(command: str) -> argparse.ArgumentParser:
    return build_parser(import_module(f'vit_plugin.commands.{command}'))


def action_of(parser: argparse.ArgumentParser, text: str) -> argparse.Action:
    """The parser's argument for an entry of the table, such as ``--task detection``."""
    name = text.partition(' ')[0]
    return next(
        action for action in parser._actions if name in (*action.option_strings, action.dest)
    )


def check_with(command: str, rule: FlagRule, *texts: str) -> None:
    """Check one rule for a call with these flags, each with the first of its values."""
    parser, args = parser_by(command), argparse.Namespace()
    for text in texts:
        # Flags without values in the table get an arbitrary one.
        value = text.partition(' ')[2].split('|')[0].replace('*', 'x') or '16'
        is_setting = 'cfg-options' in text
        setattr(args, action_of(parser, text).dest, {value: 1} if is_setting else value)
    args.given = {*vars(args)}
    check_rules([rule], parser, args)


@pytest.mark.parametrize(('command', 'rule'), ROWS, ids=NAMES)
def test_rules_name_existing_arguments_and_values(command, rule):
    parser = parser_by(command)
    for text in (*rule.flags, *rule.others):
        action, values = action_of(parser, text), text.partition(' ')[2].split('|')
        known = dict(task=TASKS, method=METHOD_NAMES).get(action.dest, action.choices)
        assert known is None or {*filter(None, values)} <= {*known}, text


@pytest.mark.parametrize(('command', 'rule'), ROWS, ids=NAMES)
def test_rules_are_enforced(command, rule):
    for flag in rule.flags:
        named = re.escape(flag_text(flag.partition('|')[0]))
        if rule.excludes:
            check_with(command, rule, flag)
        for other in rule.others:
            if rule.excludes:
                with rejects(f'^{named} does not go with .*; {rule.remedy}.$'):
                    check_with(command, rule, flag, other)
            else:
                check_with(command, rule, flag, other)
        if not rule.excludes and not any(other.endswith('|') for other in rule.others):
            with rejects(f'^{named} needs .*; {rule.remedy}.$'):
                check_with(command, rule, flag)


def test_missing_flags_count_as_their_defaults():
    (rule,) = (rule for rule in RULES['probe'] if rule.flags == ('--shots',) and not rule.excludes)
    check_with('probe', rule, '--shots')
    with rejects('--shots needs --probes fewshot; leave it out'):
        check_with('probe', rule, '--shots', '--probes knn')


def test_given_flags_include_those_at_their_default():
    line = ['--probes', 'knn', '--verbose', '--cfg-options', 'a=1', 'b=2']
    assert given_flags(parser_by('probe'), line) == {'probes', 'verbose', 'cfg_options'}
    line = ['run', 'images', '--out', 'a.npz']
    assert given_flags(parser_by('embed'), line) == {'checkpoint', 'images', 'out'}
    assert given_flags(parser_by('demo'), []) == set()
    assert given_flags(parser_by('export'), ['run', 'a.onnx']) == {'checkpoint', 'out'}
    assert given_flags(parser_by('visualize'), ['r', 'posembed', '--out', 'a']) == {
        'checkpoint',
        'picture',
        'out',
    }


def test_commands_that_train_share_their_rules():
    for command in ('train', 'pretrain'):
        assert {*TRAINING_RULES} <= {*RULES[command]}
    assert {*RULES} <= {*COMMANDS}


def test_flags_of_single_tasks_are_in_the_table():
    flags = {rule.flags[0] for rule in RULES['train'] if rule.others[0].startswith('--task')}
    assert flags == {f'--{name.replace("_", "-")}' for name in TASK_FLAGS}


def test_every_flag_of_a_folder_needs_one():
    (group,) = (group for group in parser_by('train')._action_groups if group.title == 'your data')
    flags = {action.option_strings[0] for action in group._group_actions}
    (rule,) = (rule for rule in RULES['train'] if rule.others == ('--data',) and not rule.excludes)
    assert flags == {'--data', *rule.flags}


def test_docs_have_the_table():
    assert f'\n\n{rules_as_markdown()}\n\n' in Path('docs/tools.md').read_text()
