"""One table of flags for all commands."""

import argparse
from collections import defaultdict
from importlib import import_module

import pytest

from vit_plugin.commands import COMMANDS
from vit_plugin.commands.entry import parser_of
from vit_plugin.commands.flags import FLAGS, add_flags


def parser_by(name: str) -> argparse.ArgumentParser:
    return parser_of(import_module(f'vit_plugin.commands.{name}'))


@pytest.fixture(scope='module')
def uses() -> dict[str, dict[str, argparse.Action]]:
    """Flag or name of a positional argument -> command -> what its parser does with it."""
    found = defaultdict(dict)
    for command in COMMANDS:
        parser = parser_by(command)
        for action in parser._actions:
            if action.help != argparse.SUPPRESS and action.dest != 'help':
                found[(action.option_strings or [action.dest])[0]][command] = action
    return found


def test_what_several_commands_take_is_in_the_table(uses):
    assert {name for name, users in uses.items() if len(users) > 1} == FLAGS.keys()


def test_a_name_means_one_thing(uses):
    for name in FLAGS:
        parser = argparse.ArgumentParser()
        add_flags(parser, name)
        for command, action in uses[name].items():
            assert action.dest == parser._actions[-1].dest, (command, name)
            if command != 'convert':  # whose --out may be an address
                kinds = (getattr(one.type, '__name__', '') for one in (action, parser._actions[-1]))
                assert len({*kinds}) == 1, (command, name)


def test_every_flag_says_what_it_is(uses):
    for name, users in uses.items():
        assert all(action.help for action in users.values()), name


def test_the_checkpoint_stands_first(uses):
    for command in uses['checkpoint']:
        parser = parser_by(command)
        assert parser._get_positional_actions()[0].dest == 'checkpoint', command


def test_what_is_written_is_named_by_out(uses):
    written = {'convert', 'embed', 'export', 'infer', 'plan', 'probe', 'test'}
    assert {*uses['--out']} == written | {'visualize'}
    assert not {'out', 'output', 'target'} & uses.keys()


@pytest.mark.parametrize('command', ['convert', 'export'])
def test_the_target_may_follow_the_checkpoint(command):
    parser = parser_by(command)
    for words in (['run', 'x.onnx'], ['run', '--out', 'x.onnx'], ['--out', 'x.onnx', 'run']):
        args = parser.parse_args(words)
        assert (args.checkpoint, str(args.out)) == ('run', 'x.onnx')
    for words in (['run'], ['run', 'x.onnx', '--out', 'y.onnx']):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
