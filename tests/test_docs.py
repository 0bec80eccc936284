"""In README and docs/, command lines parse, programs run, and paths and links lead somewhere."""

import argparse
import ast
import inspect
import re
import runpy
import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pages
import pytest
import torch
import yaml
from mmengine import registry as mmengine_registry
from mmengine.registry import DefaultScope
from torch.nn import functional as F

from vit_plugin import __main__ as vit_plugin_command
from vit_plugin import registry
from vit_plugin.config import read_config
from vit_plugin.files.shipped import config_path

PAGES = pages.pages()
REGISTRIES = [value for value in vars(registry).values() if isinstance(value, registry.Registry)]
# The tool that a script starts, and the number of the script's arguments before the tool's options.
SCRIPTS = {
    'dist_train.sh': ('train', 2),
    'dist_test.sh': ('test', 3),
    'slurm_train.sh': ('train', 4),
    'slurm_test.sh': ('test', 4),
}
# Keys next to `type` that a builder takes, and not the class.
BUILDER_KEYS = {'_delete_', 'constructor', 'paramwise_cfg', 'priority'}


class ParsedError(BaseException):
    """Ends a program after its arguments were parsed.

    A BaseException, so that no program catches it.
    """


@pytest.fixture
def parses(monkeypatch, capsys):
    """A function that runs a program until it has parsed its arguments, and returns its error."""
    parse = argparse.ArgumentParser.parse_args

    def parse_args(self, args=None, namespace=None):
        parse(self, args, namespace)
        raise ParsedError

    monkeypatch.setattr(argparse.ArgumentParser, 'parse_args', parse_args)

    def run(program, *argv: str) -> str | None:
        monkeypatch.setattr(sys, 'argv', list(argv))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                program()
        except ParsedError:
            return None
        except SystemExit:
            pass
        return capsys.readouterr().err or 'takes no arguments'

    return run


def complaint(words: list[str], parses) -> str | None:
    """The error in a command line of this repository; programs of others are not checked.

    Args:
        words: the program and its arguments.
        parses: the fixture.
    """
    program, *arguments = words
    if program.startswith('tools/') and program.endswith('.sh'):
        tool, count = SCRIPTS[Path(program).name]
        inner = [
            arguments[2 if 'slurm' in program else 0],
            *(['CHECKPOINT'] if tool == 'test' else []),
            *arguments[count:],
        ]
        return (
            'too few arguments'
            if len(arguments) < count
            else complaint(['vit-plugin', tool, *inner], parses)
        )
    if program == 'vit-plugin':
        return parses(vit_plugin_command.main, program, *arguments)
    if program != 'python' or not re.match(r'-m vit_plugin|tools/|benchmarks', ' '.join(arguments)):
        return None
    if arguments[0] == 'benchmarks':  # which runs the file of that name
        arguments = [f'benchmarks/{arguments[1]}.py', *arguments[2:]]
    run, path = runpy.run_path, Path(arguments[0])
    if arguments[0] == '-m':
        run, arguments = runpy.run_module, arguments[1:]
        path = Path(arguments[0].replace('.', '/'))
        path = path / '__main__.py' if path.is_dir() else path.with_suffix('.py')
    code = path.read_text()
    if not re.search(r'parse_args|run_command|script\(', code):  # it would run to its end
        return 'takes no arguments' if arguments[1:] and 'sys.argv' not in code else None
    return parses(partial(run, arguments[0], run_name='__main__'), *arguments)


@pytest.mark.parametrize('page', PAGES)
def test_command_lines_parse(page, parses):
    commands = [command for block in pages.blocks(page, 'bash') for command in block.commands()]
    wrong = [
        f'{command}: {error}'
        for command in commands + pages.inline_commands(page)
        for form in pages.forms(command)
        for program in pages.words(form)
        if program
        if (error := complaint(program, parses))
    ]
    assert not wrong, '\n'.join(wrong)


@pytest.mark.parametrize('page', PAGES)
def test_every_command_is_run_or_excused(page):
    if page in pages.RUN_PAGES:
        assert f'run_page({page!r}' in (pages.ROOT / pages.RUN_PAGES[page]).read_text()
        return
    for command in (
        command for block in pages.blocks(page, 'bash') for command in block.commands()
    ):
        test = pages.run_by(command)
        assert pages.why_not_run(command) or test, (
            f'{command}: run the page, or name it in tests/support/pages.py'
        )
        assert not test or (pages.ROOT / test).is_file(), test


def test_every_excuse_matches_a_command_or_program():
    commands = [
        command
        for page in PAGES
        for block in pages.blocks(page, 'bash')
        for command in block.commands()
    ]
    programs = [block.text for page in PAGES for block in pages.blocks(page, 'python')]
    for pattern in pages.NOT_RUN:
        assert any(re.match(pattern, text) for text in commands + programs), pattern


@pytest.mark.parametrize('page', PAGES)
def test_paths_in_commands_exist(page):
    text = '\n'.join(
        [block.text for block in pages.blocks(page)] + re.findall('`[^`]+`', pages.prose(page))
    )
    for path in re.findall(
        r'(?<![\w./])(?:configs|tools|tests|anyfolder|vit_plugin)/[\w./+-]+\.(?:py|sh|txt)\b', text
    ):
        assert Path(path).is_file(), path
    for name in re.findall(r'vit_plugin::[\w./+-]+\.py', text):
        config_path(name)


def python_blocks(condition=lambda block: True) -> list:
    """The Python blocks of all pages that meet a condition, as parameters of a test."""
    return [
        pytest.param(block, id=f'{block.page}:{block.line}')
        for page in PAGES
        for block in pages.blocks(page, 'python')
        if condition(block)
    ]


def is_program(block: pages.Block) -> bool:
    return (
        block.page not in pages.IN_ORDER
        and re.search('^(import|from) ', block.text, re.MULTILINE) is not None
    )


@pytest.mark.parametrize('block', python_blocks())
@pytest.mark.filterwarnings('ignore')
def test_python_compiles_with_existing_names_and_arguments(block):
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Call):
            check_arguments(node)
        if isinstance(node, ast.ImportFrom) and find_spec(node.module.partition('.')[0]):
            module = import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def check_arguments(call: ast.Call) -> None:
    """Assert that a call ``dict(type='vit_plugin.X', ...)`` names a registered class or function,
    and only arguments that it takes. Other calls pass.
    """
    arguments = {argument.arg: argument.value for argument in call.keywords}
    name = getattr(arguments.pop('type', None), 'value', None)
    if not isinstance(name, str) or not name.startswith('vit_plugin.'):
        return
    short = name.removeprefix('vit_plugin.')
    for each in REGISTRIES:
        each.import_from_location()
    (registered,) = {
        each.get(name) for each in REGISTRIES if short in {*each.module_dict, *each.lazy_modules}
    }
    functions = [registered]
    if isinstance(registered, type):  # whose bases may take **kwargs
        functions = [base.__init__ for base in registered.__mro__]
    known = [
        parameter
        for function in functions
        for parameter in inspect.signature(function).parameters.values()
    ]
    assert {*arguments} - BUILDER_KEYS <= {parameter.name for parameter in known} | options(
        known
    ), name


def options(parameters: list[inspect.Parameter]) -> set[str]:
    """The names of ``**options: Unpack[Options]``."""
    return {
        name
        for parameter in parameters
        if parameter.kind is parameter.VAR_KEYWORD
        for name in getattr((get_args(parameter.annotation) or [None])[0], '__annotations__', ())
    }


@pytest.mark.parametrize('block', python_blocks(is_program))
@pytest.mark.filterwarnings('ignore')
def test_programs_run(block, tmp_path, monkeypatch, registered):
    if re.match(r'# [\w.]+\.py\n', block.text) and block.page in pages.RUN_PAGES:
        pytest.skip('run with its page')
    if why := pages.why_not_run(block.text):
        pytest.skip(why)
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, f'{block.page}:{block.line}', 'exec'), dict(__name__='__main__'))


@pytest.mark.parametrize('block', python_blocks(lambda block: '\n_base_ = ' in f'\n{block.text}'))
@pytest.mark.filterwarnings('ignore')
def test_configs_inherit(block, tmp_path, registered):
    write_config(block, tmp_path)
    if 'mmdet::' in block.text:
        pytest.importorskip('mmdet')
    assert read_config(str(tmp_path / 'mine.py')).model


def write_config(block: pages.Block, folder: Path) -> None:
    """Write a config as mine.py, and every block of its page that begins with a file's name."""
    (folder / 'mine.py').write_text(block.text)
    for other in pages.blocks(block.page, 'python'):
        if named := re.match(r'# ([\w.]+\.py)\n', other.text):
            (folder / named[1]).write_text(other.text)


@pytest.fixture
def registered(monkeypatch):
    """Undo what a page registers and imports."""
    if not find_spec('mmpretrain'):
        return
    registries = import_module('mmpretrain.registry')
    monkeypatch.setattr(registries.MODELS, '_module_dict', {**registries.MODELS.module_dict})
    monkeypatch.setattr(sys, 'path', [*sys.path])
    monkeypatch.delitem(sys.modules, 'myhead', raising=False)


@pytest.mark.filterwarnings('ignore')
def test_the_example_head_and_loss_learn(registered, tmp_path):
    pytest.importorskip('mmpretrain')
    (block,) = (
        example
        for example in pages.blocks('docs/extending.md', 'python')
        if 'myhead' in example.text and '_base_' in example.text
    )
    write_config(block, tmp_path)
    cfg = read_config(str(tmp_path / 'mine.py'))
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = mmengine_registry.MODELS.build(cfg.model)
    head, labels = model.head, torch.tensor([0, 1, 2, 0])
    logits = head((torch.randn(4, head.in_channels),))
    assert logits.abs().max() <= head.scale
    expected = F.cross_entropy(logits, labels) + (1 - logits.softmax(1)[range(4), labels]).mean()
    loss = head.loss_module(logits, labels, avg_factor=4)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert head.layers.head.weight.grad.abs().sum() > 0


def test_every_page_is_in_both_lists():
    here = {Path(page).name for page in PAGES if page.startswith('docs/')} - {'index.md'}
    assert {link for link in pages.links('docs/index.md') if link.endswith('.md')} == here
    # These pages show files of the repository, to which README links itself.
    copied = {'contributing.md', 'changelog.md', 'security.md'}
    assert {
        Path(link).name for link in pages.links('README.md') if link.startswith('docs/')
    } >= here - copied


def test_every_registered_name_is_on_the_page():
    page = (
        Path('docs/configs.md')
        .read_text()
        .partition('\n## What is registered\n')[2]
        .partition('\n## ')[0]
    )
    rows = {
        name
        for row in re.findall(r'^\|.*', page, re.MULTILINE)
        for name in re.findall(r'`(\w+)`', row)
    }
    for each in REGISTRIES:
        each.import_from_location()
    # Only classes of the package: programs on the pages register more.
    registered = {
        name
        for each in REGISTRIES
        for name, value in each.module_dict.items()
        if value.__module__.startswith('vit_plugin.')
    }
    assert rows == registered.union(*(each.lazy_modules for each in REGISTRIES))


@pytest.mark.filterwarnings('ignore')
def test_the_reference_lists_every_module():
    """Check the modules of docs/api.md without Sphinx; a nightly test builds the site."""
    pytest.importorskip('mmdet')
    site = runpy.run_path('docs/conf.py')
    modules = site['MODULE_IN_LIST'].findall(Path('docs/api.md').read_text())
    assert site['reference'](modules).keys() == set(modules)


def test_yaml_parses():
    blocks = [block for page in PAGES for block in pages.blocks(page, 'yaml')]
    assert blocks
    for block in blocks:
        assert isinstance(yaml.safe_load(block.text), dict), block


@pytest.mark.parametrize('page', PAGES)
def test_links_lead_somewhere(page):
    for link in pages.links(page):
        path, _, anchor = link.partition('#')
        target = (pages.ROOT / page).parent / path if path else pages.ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in pages.anchors(target), link
