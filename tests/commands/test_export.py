import re

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

CONFIG = 'configs/vit/vit-mini-p2_1xb16_digits.py'


@pytest.fixture
def export(run_command):
    def run(checkpoint, out, *arguments):
        return run_command(f'export {checkpoint} --config {CONFIG} --out {out}', *arguments)

    return run


@pytest.fixture
def checkpoint(tmp_path):
    cfg = Config.fromfile(CONFIG)
    init_default_scope(cfg.default_scope)
    model = MODELS.build(cfg.model)
    torch.nn.init.normal_(model.head.layers.head.weight)
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'epoch_1.pth')
    return tmp_path / 'epoch_1.pth'


@pytest.mark.nightly
def test_it_tells_how_far_the_file_is_from_the_model(export, checkpoint, tmp_path):
    out = tmp_path / 'new' / 'model.pt2'
    done = export(checkpoint, out)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r'largest difference .*: (\S+) of', done.stdout)[1]) < 1e-5
    assert 'images (any number, 1, 8, 8)' in done.stdout
    assert torch.export.load(out).module()(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


def test_bad_input_is_one_sentence(export, checkpoint, tmp_path):
    weights = checkpoint.read_bytes()
    for arguments, words in (
        ([checkpoint, checkpoint / 'x.pt2'], "epoch_1.pth' is a file; give another folder"),
        (
            [checkpoint, tmp_path / 'x.pt2', '--img-size', 8, 8, 8],
            '--img-size takes one number or two, got 8 8 8',
        ),
        ([checkpoint, tmp_path / 'x.pt2', '--img-size', 1], 'smaller than one patch of 2 x 2'),
        ([checkpoint, tmp_path / 'x.pt2', '--img-size', -8], '--img-size: -8 is not 1 or more'),
    ):
        done = export(*arguments)
        assert done.returncode in (1, 2)
        assert words in done.stderr.splitlines()[-1]
        assert list(tmp_path.iterdir()) == [checkpoint]
    assert checkpoint.read_bytes() == weights


@pytest.mark.parametrize('suffix', ['.pt2', '.onnx'])
def test_it_does_not_write_over_what_it_reads(export, checkpoint, suffix):
    source = checkpoint.rename(checkpoint.with_suffix(suffix))
    weights = source.read_bytes()
    done = export(source, source)
    assert done.returncode == 1
    assert 'would be overwritten while it is read' in done.stderr.splitlines()[-1]
    assert source.read_bytes() == weights
