"""Traced graphs compute what the model computes, and nothing that can be computed before."""

import pytest
import torch
from tiny_models import classifier, randomize

from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.traced_graph import trace

pytest.importorskip('mmpretrain')
SIZE = (40, 24)  # height and width; 5 x 3 patches, where the native grid is 4 x 4


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')  # of the exporter
@pytest.mark.parametrize('size', [SIZE, None])
def test_graphs_contain_no_computations_on_parameters(tiny_hybrid, size):
    """Kernels are standardized, and at a fixed size positions resampled, when it is exported."""
    pos_embed = dict(type='learned', relative=True, interpolate_mode='bicubic')
    model = deploy(randomize(classifier(dict(tiny_hybrid, pos_embed=pos_embed)), std=0.2))
    images = torch.rand(2, 3, *(size or SIZE))
    expected = model(images)
    program = trace(model, size)
    assert torch.equal(program.module()(images), expected)
    operators = [str(node.target) for node in program.graph.nodes if node.op == 'call_function']
    standardizing = [
        name
        for name in operators
        if 'norm' in name and 'layer_norm' not in name and 'group_norm' not in name
    ]
    assert not standardizing
    resampling = [name for name in operators if 'upsample' in name or 'index' in name]
    assert bool(resampling) == (size is None)
