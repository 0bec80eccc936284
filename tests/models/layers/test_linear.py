import pytest
import torch
import torch.nn.functional as F
from torch import func, nn
from torch.autograd import forward_ad
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.models.layers import Mlp
from vit_plugin.models.layers import linear as module
from vit_plugin.models.layers.linear import apply_linear, linear

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


@pytest.mark.parametrize('shape', [(8, ), (3, 8), (0, 8), (2, 1, 3, 8)])
def test_any_leading_shape(sources, shape):
    x = torch.randn(shape, requires_grad=True)
    ours, theirs = linear(x, *sources[1:]), F.linear(x, *sources[1:])
    close(ours, theirs)
    close(*(torch.autograd.grad(y.sum(), x)[0] for y in (ours, theirs)))


@pytest.mark.parametrize('bias', [torch.arange(12.)[::2], torch.ones(1).expand(6)], ids=['strided', 'expanded'])
def test_a_bias_with_gaps(sources, bias):
    x, weight, _ = (source.detach() for source in sources)
    close(linear(x, weight, bias), F.linear(x, weight, bias))
    close(linear(x[:, ::2], weight.t().contiguous().t(), bias), F.linear(x[:, ::2], weight, bias))


def test_its_output_may_be_changed_in_place(sources):
    close(*(torch.autograd.grad(call(*sources).relu_().square().sum(), sources[1])[0] for call in (linear, F.linear)))


def test_nothing_is_saved_that_no_gradient_needs(sources):
    x, weight, bias = sources
    weight.requires_grad = False
    y = linear(x, weight, bias)
    with torch.no_grad():
        x += 1  # which the gradients of x and bias do not depend on
    y.sum().backward()
    close(x.grad, weight.sum(0).expand_as(x))


TRANSFORMS = {
    'gradients of gradients': lambda f: lambda *sources: torch.autograd.grad(
        torch.autograd.grad(f(*sources), sources[1], create_graph=True)[0].square().sum(), sources[0])[0],
    "each sample's gradient": lambda f: func.vmap(func.grad(f, 1), (0, None, None)),
    'hessian': lambda f: func.hessian(f, 2),
    'jacobian of a batch': lambda f: lambda *sources: torch.autograd.functional.jacobian(
        f, sources, vectorize=True)[1],
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
def test_who_knows_only_torchs_own_operators_gets_them():
    mlp, x = Mlp(8, 16, dict(type='GELU')), torch.randn(1, 5, 8)
    with torch.no_grad():
        assert ONEDNN in operators(lambda: mlp(x))
        with torch.backends.mkldnn.flags(enabled=False):
            assert ONEDNN not in operators(lambda: mlp(x))
        with torch.autocast('cpu', torch.bfloat16):
            assert ONEDNN not in operators(lambda: mlp(x))
        graphs = (torch.jit.trace(mlp, x).inlined_graph, torch.export.export(mlp, (x, )).graph)
    for graph in graphs:
        assert 'linear' in str(graph)
        assert 'mkldnn' not in str(graph)
    assert type(mlp.fc1) is nn.Linear  # by which tools that replace layers know them


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


def test_a_layer_or_activation_that_is_watched_or_replaced_is_called(sources):
    layer, act, called = nn.Linear(8, 6), nn.GELU(), []
    act.register_forward_hook(lambda *_: called.append('act'))
    apply_linear(layer, sources[0], act)
    layer.register_full_backward_hook(lambda *_: called.append('layer'))
    apply_linear(layer, sources[0], act).sum().backward()
    assert called == ['act', 'act', 'layer']

    layer = nn.Linear(8, 6)
    layer.forward = lambda x: x
    assert apply_linear(layer, sources[0]) is sources[0]
    assert apply_linear(nn.Identity(), sources[0], nn.Identity()) is sources[0]
