"""The table of flags that need or exclude each other: that of the docs, and each row is kept."""

import argparse
import re
from importlib import import_module
from pathlib import Path

import pytest
from rejection import rejects

from vit_plugin.commands import COMMANDS
from vit_plugin.commands.entry import parser_of
from vit_plugin.commands.flag_rules import (
    OF_TRAININGS,
    RULES,
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
    return parser_of(import_module(f'vit_plugin.commands.{command}'))


def action_of(parser: argparse.ArgumentParser, text: str) -> argparse.Action:
    """The argument that a text of the table names."""
    name = text.partition(' ')[0]
    return next(one for one in parser._actions if name in (*one.option_strings, one.dest))


def keep(command: str, rule: FlagRule, *texts: str) -> None:
    """Check one rule where these flags are given, each with the first of its values."""
    parser, args = parser_by(command), argparse.Namespace()
    for text in texts:
        value = text.partition(' ')[2].split('|')[0].replace('*', 'x') or '16'
        is_setting = 'cfg-options' in text
        setattr(args, action_of(parser, text).dest, {value: 1} if is_setting else value)
    args.given = {*vars(args)}
    check_rules([rule], parser, args)


@pytest.mark.parametrize(('command', 'rule'), ROWS, ids=NAMES)
def test_a_rule_names_arguments_and_values_that_are_there(command, rule):
    parser = parser_by(command)
    for text in (*rule.flags, *rule.others):
        action, values = action_of(parser, text), text.partition(' ')[2].split('|')
        known = dict(task=TASKS, method=METHOD_NAMES).get(action.dest, action.choices)
        assert known is None or {*filter(None, values)} <= {*known}, text


@pytest.mark.parametrize(('command', 'rule'), ROWS, ids=NAMES)
def test_a_rule_is_kept(command, rule):
    for flag in rule.flags:
        named = re.escape(flag_text(flag.partition('|')[0]))
        if rule.excludes:
            keep(command, rule, flag)
        for other in rule.others:
            if rule.excludes:
                with rejects(f'^{named} does not go with .*; {rule.remedy}.$'):
                    keep(command, rule, flag, other)
            else:
                keep(command, rule, flag, other)
        if not rule.excludes and not any(other.endswith('|') for other in rule.others):
            with rejects(f'^{named} needs .*; {rule.remedy}.$'):
                keep(command, rule, flag)


def test_what_is_left_out_counts_as_the_default():
    (rule,) = (one for one in RULES['probe'] if one.flags == ('--shots',) and not one.excludes)
    keep('probe', rule, '--shots')
    with rejects('--shots needs --probes fewshot; leave it out'):
        keep('probe', rule, '--shots', '--probes knn')


def test_a_value_that_is_the_default_is_given_all_the_same():
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
        assert {*OF_TRAININGS} <= {*RULES[command]}
    assert {*RULES} <= {*COMMANDS}


def test_flags_of_some_tasks_alone_are_in_the_table():
    flags = {rule.flags[0] for rule in RULES['train'] if rule.others[0].startswith('--task')}
    assert flags == {f'--{name.replace("_", "-")}' for name in TASK_FLAGS}


def test_the_page_has_the_table():
    assert f'\n\n{rules_as_markdown()}\n\n' in Path('docs/tools.md').read_text()
