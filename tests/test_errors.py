"""Errors for missing packages and system libraries, and other packages' errors as one sentence."""

import importlib
import sys

import mmpretrain.registry  # noqa: F401  `forget` removes and restores its scope
import pytest
import torch
from rejection import rejects

from vit_plugin.errors import ConfigError, MissingExtraError, named_line, needed_by, rejecting


@pytest.mark.parametrize(
    ('missing', 'module', 'words'),
    [
        *(
            ('mmengine', f'vit_plugin.{name}', 'vit_plugin needs mmengine')
            for name in ('registry', 'models', 'engine.launch', 'data', 'weights')
        ),
        ('mmcv', 'vit_plugin.detection', 'vit_plugin.detection needs mmcv'),
    ],
)
def test_missing_framework_raises_with_its_extra(forget, missing, module, words):
    forget(missing)
    with pytest.raises(
        ImportError, match=f"{words}.*pip install -c tests/constraints.txt -e '.\\[onedl\\]'"
    ):
        importlib.import_module(module)


def test_create_model_works_without_mmpretrain(forget):
    forget('mmpretrain')
    assert (
        importlib.import_module('vit_plugin').create_model('Ti/16', 3, img_size=16).num_classes == 3
    )


def test_head_without_mmpretrain_or_stand_in_raises(monkeypatch, forget):
    forget('mmpretrain')
    project = importlib.import_module('vit_plugin.project')
    monkeypatch.setattr(project, 'declared_rows', lambda table: {})
    with pytest.raises(
        ImportError, match='needs mmpretrain, which is not installed; in a clone of'
    ):
        importlib.import_module('vit_plugin.models.heads.vit_head')


@pytest.mark.parametrize('module', ['commands.command_line', 'inference.load', 'deploy.export'])
def test_commands_are_imported_without_mmcv(forget, module):
    """``test_mmengine_alone.py`` runs commands without mmcv."""
    forget('mmcv')
    assert importlib.import_module(f'vit_plugin.{module}')


def test_import_errors_of_our_modules_are_not_hidden(monkeypatch, forget):
    forget('no other package')  # unloads vit_plugin only
    # Make the import of the head fail.
    monkeypatch.setitem(sys.modules, 'vit_plugin.models.heads.vit_head', None)
    with pytest.raises(ImportError, match='vit_head'):
        importlib.import_module('vit_plugin.models').ViTClsHead  # noqa: B018


def test_incompatible_framework_raises_with_the_cause():
    with (
        pytest.raises(
            MissingExtraError,
            match='This cannot be imported.*AssertionError: MMCV==3 is used; install',
        ),
        needed_by('This'),
    ):
        raise AssertionError('MMCV==3 is used')


@pytest.mark.parametrize(
    ('module', 'remedies'),
    [
        ('cv2', r'apt-get install libgl1 .*pip install .* opencv-contrib-python-headless'),
        ('onnxruntime', 'install the package of your distribution'),
    ],
)
def test_missing_system_library_raises_with_a_remedy(forget, module, remedies):
    forget(
        module,
        ImportError(
            'libxcb.so.1: cannot open shared object file: No such file or directory', name=module
        ),
    )
    with (
        pytest.raises(
            MissingExtraError, match=f'This .*{module} needs libxcb.so.1, which .*{remedies}'
        ),
        needed_by('This'),
    ):
        importlib.import_module(module)


def test_missing_module_raises():
    with (
        pytest.raises(MissingExtraError, match="No module named 'no_such_module'"),
        needed_by('This'),
    ):
        import no_such_module  # noqa: F401


def test_config_errors_pass_through_needed_by():
    with rejects('^Import it first.$'), needed_by('This'):
        raise ConfigError('Import it first.')


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        ({}, 'It fails (the first line); change it.'),
        (dict(remedy=''), 'It fails (the first line).'),
        (dict(cause=named_line), 'It fails (RuntimeError: the first line); change it.'),
    ],
)
def test_an_error_of_another_package_becomes_one_sentence(options, sentence):
    error = RuntimeError('\nthe first\tline.\nand more')
    with (
        pytest.raises(ConfigError) as raised,
        rejecting('It fails', **dict(remedy='change it') | options),
    ):
        raise error
    assert str(raised.value) == sentence
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    'error',
    [
        ConfigError('Import it first.'),
        MissingExtraError('This needs onnx.'),
        MemoryError(),
        torch.OutOfMemoryError('CUDA out of memory.'),
        RuntimeError('DefaultCPUAllocator: not enough memory'),
        KeyboardInterrupt(),
        LookupError('of another kind'),
    ],
)
def test_errors_with_their_own_remedy_pass_through(error):
    caught = (Exception,) if not isinstance(error, LookupError) else (RuntimeError, ValueError)
    with pytest.raises(type(error)) as raised, rejecting('It fails', 'change it', caught):
        raise error
    assert raised.value is error


def test_too_little_memory_for_a_library_raises():
    text = 'libtorch_cuda.so: failed to map segment from shared object'
    with (
        pytest.raises(MissingExtraError, match='not enough memory for libtorch_cuda.so; free some'),
        needed_by('This'),
    ):
        raise ImportError(text)
