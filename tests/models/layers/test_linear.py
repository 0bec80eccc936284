import pytest
import torch
import torch.nn.functional as F
from torch import func, nn
from torch.autograd import forward_ad
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.models.layers import linear as module
from vit_plugin.models.layers.linear import Linear, activated, is_plain, linear

ONEDNN = 'mkldnn::_linear_pointwise'

pytestmark = pytest.mark.skipif(not module._AVAILABLE, reason='torch has no oneDNN here')


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(module, 'MIN_PRODUCTS', 0)


@pytest.fixture
def sources() -> list[torch.Tensor]:
    return [torch.randn(shape, requires_grad=True) for shape in ((2, 5, 8), (6, 8), (6, ))]


def operators(call) -> set[str]:
    with profile(activities=[ProfilerActivity.CPU]) as record:
        call()
    return {event.key for event in record.key_averages()}


def close(ours, theirs) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('gelu', [None, 'none', 'tanh'])
@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('grad', [True, False])
def test_it_is_torchs_linear_and_gelu(sources, gelu, bias, grad):
    sources = sources if bias else sources[:2]

    def plain(*sources):
        y = F.linear(*sources)
        return F.gelu(y, approximate=gelu) if gelu else y

    with torch.set_grad_enabled(grad):
        assert ONEDNN in operators(lambda: linear(*sources, gelu=gelu))
        ours, theirs = linear(*sources, gelu=gelu), plain(*sources)
    close(ours, theirs)
    if grad:
        weights = torch.randn_like(ours)
        for mine, its in zip(torch.autograd.grad(ours, sources, weights), torch.autograd.grad(theirs, sources, weights),
                             strict=True):
            close(mine, its)


def test_only_the_gradients_that_are_wanted(sources):
    for wanted in range(3):
        given = [source if i == wanted else source.detach() for i, source in enumerate(sources)]
        close(torch.autograd.grad(linear(*given).square().sum(), given[wanted]),
              torch.autograd.grad(F.linear(*given).square().sum(), given[wanted]))


TRANSFORMS = {
    'gradients of gradients': lambda f: lambda *sources: torch.autograd.grad(
        torch.autograd.grad(f(*sources), sources[1], create_graph=True)[0].square().sum(), sources[0])[0],
    "each sample's gradient": lambda f: func.vmap(func.grad(f, 1), (0, None, None)),
    'hessian': lambda f: func.hessian(f, 2),
    'forward': lambda f: lambda *sources: func.jvp(f, sources, sources)[1],
}


@pytest.mark.parametrize('transform', TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.filterwarnings('ignore:`torch.jit.script` is deprecated')  # torch's own, at its first forward gradient
def test_other_kinds_of_gradients(sources, transform):
    ours, theirs = (transform(lambda *args, f=f: f(*args).square().sum())(*sources) for f in (linear, F.linear))
    close(ours, theirs)


def test_a_dual_number_keeps_its_tangent(sources):
    x, weight, bias = (source.detach() for source in sources)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(linear(forward_ad.make_dual(x, x), weight, bias)).tangent
    close(tangent, F.linear(x, weight))


@pytest.mark.filterwarnings('ignore:TF32 acceleration', 'ignore:`torch.jit.trace')  # torch's own
def test_who_knows_only_torchs_own_operators_gets_them(sources):
    layer = Linear(8, 6)
    x = sources[0].detach()
    with torch.backends.mkldnn.flags(enabled=False):
        assert ONEDNN not in operators(lambda: layer(x))
    with torch.autocast('cpu', torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    assert 'aten::linear' in str(torch.jit.trace(layer, x).inlined_graph)
    program = torch.export.export(layer, (x, ))
    assert not any('mkldnn' in str(node.target) for node in program.graph.nodes)


def test_its_arithmetic_is_counted(sources):
    with FlopCounterMode(display=False) as counter:
        linear(*sources).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 10 * 8 * 6


@pytest.mark.skipif(torch.bfloat16 not in module._DTYPES, reason='this CPU does not compute in bfloat16')
def test_bfloat16(sources):
    x, weight, bias = (source.detach().bfloat16() for source in sources)
    ours = linear(x, weight, bias, gelu='tanh')
    assert ours.dtype == torch.bfloat16
    exact = F.gelu(F.linear(x.double(), weight.double(), bias.double()), approximate='tanh')
    torch.testing.assert_close(ours.double(), exact, rtol=1e-2, atol=1e-2)


def test_a_layer_or_activation_with_a_hook_is_called(sources):
    layer, act, called = Linear(8, 6), nn.GELU(), []
    assert is_plain(layer)
    act.register_forward_hook(lambda *_: called.append('act'))
    activated(layer, act, sources[0])
    layer.register_forward_hook(lambda *_: called.append('layer'))
    assert not is_plain(layer)
    activated(layer, act, sources[0])
    assert called == ['act', 'layer', 'act']
    assert not is_plain(nn.Sequential(layer))
