"""Compiled models need one graph per image size, and one for all batch sizes."""

import pytest
import torch

from vit_plugin.models import VisionTransformer

WINDOWS = dict(
    encoder=dict(window=dict(size=3, global_blocks=(1,))),
    with_cls_token=False,
    out_type='featmap',
    pos_embed=dict(type='learned', relative=True),
)


class Graphs:
    """A backend of ``torch.compile`` that counts the graphs and runs them as they are."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list) -> torch.fx.GraphModule:
        self.count += 1
        return graph


@pytest.fixture(autouse=True)
def fresh_compiler() -> None:
    torch.compiler.reset()


@pytest.mark.parametrize('mode', [pytest.param('eval', marks=pytest.mark.nightly), 'train'])
@pytest.mark.parametrize(
    'changes',
    [
        pytest.param(dict(), id='hybrid pyramid', marks=pytest.mark.nightly),
        pytest.param(WINDOWS, id='windows', marks=pytest.mark.nightly),
        pytest.param(
            dict(with_cp=True, drop_path_rate=0.1), id='checkpointed', marks=pytest.mark.nightly
        ),
    ],
)
def test_one_graph_for_each_size(tiny, tiny_hybrid, mode, changes):
    graphs = Graphs()
    cfg = tiny if changes else dict(tiny_hybrid, out_type='pyramid')
    model = VisionTransformer(**cfg, **changes).train(mode == 'train')
    compiled = torch.compile(model, backend=graphs, fullgraph=True, dynamic=False)
    with torch.set_grad_enabled(mode == 'train'):
        for size in [(32, 32), (40, 24)] * 3:
            images = torch.randn(2, 3, *size)
            outs = compiled(images)
            if mode == 'eval':
                torch.testing.assert_close(outs, model(images))
    assert graphs.count == 2


def test_one_graph_for_every_batch_size(tiny):
    graphs = Graphs()
    compiled = torch.compile(VisionTransformer(**tiny).eval(), backend=graphs, fullgraph=True)
    for batch in (2, 3, 5, 8):
        images = torch.randn(batch, 3, 32, 32)
        torch._dynamo.mark_dynamic(images, 0)
        compiled(images)
    assert graphs.count == 1
