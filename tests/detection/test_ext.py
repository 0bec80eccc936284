"""The stand-in for ``mmcv._ext``: missing ops, compiled ops, and scripts that need it."""

import runpy
import subprocess
import sys

import pytest
import torch
from rejection import rejects


def run(*arguments: str) -> str:
    command = [sys.executable, '-W', 'ignore', *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_missing_ops_raise_when_called():
    from mmcv.ops import CARAFE

    with rejects("'carafe_forward'.*MMCV_WITH_OPS=1 pip install.*docs/detection.md") as raised:
        CARAFE(3, 1, 2)(torch.randn(1, 4, 2, 2), torch.rand(1, 9, 4, 4))
    assert '\n' not in str(raised.value)


def test_rotated_boxes_raise():
    from mmcv.ops import batched_nms

    with rejects("no replacement for mmcv's op 'nms_rotated': compile mmcv"):
        batched_nms(
            torch.rand(3, 5),
            torch.rand(3),
            torch.zeros(3),
            dict(type='nms_rotated', iou_threshold=0.5),
        )


def test_the_environment_report_names_our_ops():
    from mmcv.ops import get_compiler_version, get_compiling_cuda_version

    assert get_compiler_version() == get_compiling_cuda_version() == 'none: vit_plugin.detection'


@pytest.mark.nightly
def test_a_loaded_extension_is_kept():
    run(
        '-c',
        'import sys, types; sys.modules["mmcv._ext"] = fake = types.ModuleType("mmcv._ext")\n'
        'import vit_plugin.detection; assert sys.modules["mmcv._ext"] is fake',
    )


@pytest.mark.nightly
def test_an_installed_extension_is_kept(tmp_path):
    (tmp_path / '_ext.py').write_text('compiled = True\n')
    run(
        '-c',
        f'import mmcv; mmcv.__path__.insert(0, {str(tmp_path)!r})\n'
        'import vit_plugin.detection, mmcv._ext; assert mmcv._ext.compiled is True',
    )


@pytest.mark.nightly
def test_scripts_run_by_the_module_have_the_ops(tmp_path):
    script = tmp_path / 'script.py'
    (tmp_path / 'neighbor.py').write_text('')
    script.write_text('import sys, mmcv.ops, neighbor\nprint(__name__, sys.argv[1:])\n')
    assert "__main__ ['--flag']" in run('-m', 'vit_plugin.detection', str(script), '--flag')


def test_a_script_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['-m', 'none.py'])
    with pytest.raises(SystemExit, match=r"there is no script 'none\.py'; correct its path"):
        runpy.run_module('vit_plugin.detection', run_name='__main__')
