import re
from functools import partial

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

CONFIG = 'configs/vit/vit-mini-p2_1xb16_digits.py'


@pytest.fixture
def export(run_tool):
    return partial(run_tool, 'export')


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
    done = export(CONFIG, checkpoint, out)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r'largest difference .*: (\S+) of', done.stdout)[1]) < 1e-5
    assert 'images (any number, 1, 8, 8)' in done.stdout
    assert torch.export.load(out).module()(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


def test_bad_input_is_one_sentence(export, checkpoint, tmp_path):
    for arguments, words in (([checkpoint, tmp_path / 'x.pb'], 'must end in one of .pt2, .onnx'),
                             ([tmp_path / 'none.pth', tmp_path / 'x.pt2'], 'There is no file'),
                             ([checkpoint, tmp_path / 'x.pt2', '--dtype', 'int8'], 'int8 is written as .onnx')):
        done = export(CONFIG, *arguments)
        assert done.returncode == 1
        assert words in done.stderr.splitlines()[-1]
