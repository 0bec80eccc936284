"""All commands share one table of flags."""

import argparse
from collections import defaultdict
from importlib import import_module

import pytest

from vit_plugin.commands import COMMANDS
from vit_plugin.commands.entry import build_parser
from vit_plugin.commands.flags import FLAGS, add_flags


def parser_by(name: str) -> argparse.ArgumentParser:
    return build_parser(import_module(f'vit_plugin.commands.{name}'))


@pytest.fixture(scope='module')
def uses() -> dict[str, dict[str, argparse.Action]]:
    """Flag or positional argument -> command -> the action of its parser."""
    actions = defaultdict(dict)
    for command in COMMANDS:
        parser = parser_by(command)
        for action in parser._actions:
            if action.help != argparse.SUPPRESS and action.dest != 'help':
                actions[(action.option_strings or [action.dest])[0]][command] = action
    return actions


def test_flags_of_several_commands_are_in_the_table(uses):
    assert {name for name, users in uses.items() if len(users) > 1} == FLAGS.keys()


def test_a_flag_has_the_same_type_in_all_commands(uses):
    for name in FLAGS:
        parser = argparse.ArgumentParser()
        add_flags(parser, name)
        for command, action in uses[name].items():
            assert action.dest == parser._actions[-1].dest, (command, name)
            if command != 'convert':  # its --out may be an address
                of_command, of_table = (
                    getattr(one.type, '__name__', '') for one in (action, parser._actions[-1])
                )
                assert of_command == of_table, (command, name)


def test_every_flag_has_a_help_text(uses):
    for name, users in uses.items():
        assert all(action.help for action in users.values()), name


def test_the_checkpoint_is_the_first_argument(uses):
    for command in uses['checkpoint']:
        parser = parser_by(command)
        assert parser._get_positional_actions()[0].dest == 'checkpoint', command


def test_all_commands_that_write_have_out(uses):
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


def test_paths_to_write_may_be_in_the_home_directory(monkeypatch):
    """The shell does not expand ``--out=~/x.npz``."""
    monkeypatch.setenv('HOME', '/home/me')
    args = parser_by('embed').parse_args(['run', 'images', '--out=~/x.npz'])
    assert str(args.out) == '/home/me/x.npz'
    args = parser_by('train').parse_args(['--data=~/pets', '--work-dir=~/run'])
    assert (args.data, args.work_dir) == ('/home/me/pets', '/home/me/run')
    for target, written in (('~/x.pth', '/home/me/x.pth'), ('hf://me/x', 'hf://me/x')):
        assert parser_by('convert').parse_args(['run', f'--out={target}']).out == written
    args = parser_by('visualize').parse_args(['run', 'posembed', '--out=~/pictures'])
    assert str(args.out) == '/home/me/pictures'
