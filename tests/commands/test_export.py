"""``export`` as a command: what it prints, which sizes it takes, and that errors write nothing."""

import re

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from rejection import rejects

from vit_plugin.commands.export import check_padded
from vit_plugin.deploy.input_sizes import Padding

CONFIG = 'configs/vit/vit-mini-p2_1xb16_digits.py'


@pytest.fixture
def export(run_command):
    def run(checkpoint, out, *arguments):
        return run_command(f'export {checkpoint} --config {CONFIG} --out {out}', *arguments)

    return run


@pytest.fixture
def checkpoint(tmp_path):
    """A classifier of digits with random weights, also in its head."""
    cfg = Config.fromfile(CONFIG)
    init_default_scope(cfg.default_scope)
    model = MODELS.build(cfg.model)
    torch.nn.init.normal_(model.head.layers.head.weight)
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'epoch_1.pth')
    return tmp_path / 'epoch_1.pth'


@pytest.mark.nightly
def test_export_prints_the_difference_from_the_model(export, checkpoint, tmp_path):
    out = tmp_path / 'new' / 'model.pt2'
    done = export(checkpoint, out)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r'largest difference .*: (\S+) of', done.stdout)[1]) < 1e-5
    assert 'images (1, 1, 8, 8)' in done.stdout
    stages = ['Tracing the graph', 'Writing the file', 'Comparing it with the model']
    assert re.findall(r'^(.*) \.\.\. \d+ s$', done.stdout, re.MULTILINE)[:3] == stages
    assert torch.export.load(out).module()(torch.zeros(1, 1, 8, 8)).shape == (1, 10)


@pytest.mark.nightly
def test_dynamic_batch_exports_a_file_for_any_number_of_images(export, checkpoint, tmp_path):
    out = tmp_path / 'model.pt2'
    done = export(checkpoint, out, '--dynamic', 'batch')
    assert done.returncode == 0, done.stderr
    assert 'images (any number, 1, 8, 8)' in done.stdout
    assert torch.export.load(out).module()(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


@pytest.mark.parametrize(
    ('padding', 'size', 'suggested'),
    [
        (Padding(32), (144, 192), '160 192'),
        (Padding(1, (64, 96)), (32, 96), '64 96'),
        (Padding(32), (160, 192), None),
        (Padding(), (37, 41), None),
    ],
)
def test_sizes_that_would_be_padded_raise_with_the_padded_size(padding, size, suggested):
    if suggested is None:
        check_padded('--img-size', size, padding)
        return
    with rejects(f'--img-size {size[0]} {size[1]}: .*give --img-size {suggested}'):
        check_padded('--img-size', size, padding)


def test_invalid_calls_raise_and_write_nothing(export, checkpoint, tmp_path):
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
def test_exporting_onto_the_checkpoint_raises(export, checkpoint, suffix):
    source = checkpoint.rename(checkpoint.with_suffix(suffix))
    weights = source.read_bytes()
    done = export(source, source)
    assert done.returncode == 1
    assert 'would be overwritten while it is read' in done.stderr.splitlines()[-1]
    assert source.read_bytes() == weights
