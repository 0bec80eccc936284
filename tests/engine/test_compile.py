"""Blocks that are compiled one by one compute the same as eager ones, with few graphs."""

from copy import deepcopy

import pytest
import torch
from rejection import rejects
from tiny_models import TINY_SIZES
from torch._dynamo.utils import counters

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine.compile import compile_blocks
from vit_plugin.models import VisionTransformer

pytestmark = pytest.mark.filterwarnings('ignore')  # torch warns while it traces

SIZES = dict(TINY_SIZES, num_layers=3)
MODELS = {
    'plain': dict(arch=SIZES, drop_path_rate=0.2, out_type='featmap'),
    'rotary': dict(
        arch=SIZES, pos_embed=dict(type='none', rotary=dict(form='index')), out_type='featmap'
    ),
    'recomputed': dict(arch=SIZES, with_cp=True, out_type='featmap'),
    'windows': dict(
        arch=SIZES,
        with_cls_token=False,
        encoder=dict(window=dict(size=2, global_blocks=(2,))),
        out_type='featmap',
    ),
    'hybrid': dict(arch=dict(SIZES, resnet=dict(stage_depths=(1,), width=32)), out_type='featmap'),
}


@pytest.fixture(autouse=True)
def fresh_graphs():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    'name',
    [pytest.param(name, marks=() if name == 'plain' else pytest.mark.nightly) for name in MODELS],
)
def test_one_graph_for_each_kind_of_block(name):
    """Blocks are of several kinds if they differ by stochastic depth or windows, or with a CNN.

    The second image size adds one graph of each kind, which fits all further sizes.
    """
    torch.manual_seed(0)
    model = VisionTransformer(img_size=64, **MODELS[name]).train()
    eager = deepcopy(model)
    compile_blocks(model, backend='aot_eager')
    graphs = []
    for size in (64, 96, 80):
        images = torch.randn(2, 3, size, size)
        outs = []
        for network in (model, eager):
            torch.manual_seed(1)
            outs.append(network(images)[-1])
            outs[-1].square().mean().backward()
        torch.testing.assert_close(outs[0], outs[1], rtol=1e-5, atol=1e-5)
        graphs.append(counters['stats']['unique_graphs'])
    for compiled, expected in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(compiled.grad, expected.grad, rtol=1e-4, atol=1e-5)
    kinds = 1 if name in ('rotary', 'recomputed') else 2
    assert graphs[:2] == [kinds, 2 * kinds]
    # A grid that windows do not divide needs padding, and so another graph.
    assert graphs[-1] <= (2 * kinds + 1 if name == 'windows' else 2 * kinds)
    assert not counters['graph_break']
    assert deepcopy(model).state_dict().keys() == eager.state_dict().keys()


@pytest.mark.nightly
def test_a_run_compiles_its_blocks(tmp_path):
    runner = build(tiny_cfg(tmp_path, compile=dict(blocks=True, backend='aot_eager')))
    runner.train()
    # Two kinds of blocks in training and validation, each also for a last batch of another size.
    assert 0 < counters['stats']['unique_graphs'] <= 8
    assert not counters['graph_break']


def test_wrong_options_raise():
    model = VisionTransformer(SIZES)
    with rejects('compile takes no mod .*did you mean mode'):
        compile_blocks(model, mod='default')
    with rejects('names its blocks'):
        compile_blocks(torch.nn.Linear(2, 2))
