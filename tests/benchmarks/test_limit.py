"""The matrix products that determine the limit of a model's speed."""

import pytest
import torch

from benchmarks.limit import Shape, Trace, candidates
from benchmarks.measuring.calls import count_flops
from benchmarks.measuring.compare import Case, step_of
from benchmarks.measuring.implementations import build_ours

ARCH = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32)
STEM = dict(patch_embed=dict(type='ResNetEmbed', stage_depths=(1, 1), width=32, patch_size=2))


@pytest.mark.parametrize('mode', ['forward', 'train'])
def test_traced_products_have_all_flops_of_the_model(mode):
    model = build_ours(ARCH, 32, 'cls_token', STEM).train(mode == 'train')
    step = step_of(Case(ARCH, 32, 2, mode), model, [torch.randn(2, 3, 32, 32)])
    with Trace() as trace:
        step()
    for layout in range(3):  # all layouts compute the same product
        replayed = sum(
            number * count_flops(list(candidates(*call))[layout])
            for call, number in trace.calls.items()
        )
        assert replayed == count_flops(step) > 0


def test_shapes_keep_strides():
    transposed = torch.empty(4, 6).t()
    rebuilt = Shape(tuple(transposed.shape), transposed.stride()).tensor(torch.preserve_format)
    assert (rebuilt.shape, rebuilt.stride()) == (transposed.shape, transposed.stride())
