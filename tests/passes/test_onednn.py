from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import func, nn
from torch.autograd import forward_ad
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.models.layers import Mlp
from vit_plugin.passes import onednn, processor
from vit_plugin.passes.onednn import OneDnnLinear, use_onednn, use_torch

OPERATOR = 'mkldnn::_linear_pointwise'
BOTH = dict.fromkeys((torch.float32, torch.bfloat16), ('linear', 'gelu'))

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason='torch has no oneDNN here')


def test_the_private_operator_is_there():
    """On the torch that the tests install; where it is missing, the pass leaves the layers alone."""
    schema = torch.ops.mkldnn._linear_pointwise.default._schema
    assert [argument.name for argument in schema.arguments] == ['X', 'W', 'B', 'attr', 'scalars', 'algorithm']


@pytest.fixture(autouse=True)
def small_ones_in_small_blocks(monkeypatch):
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)
    monkeypatch.setattr(onednn, 'ROWS', 3)


@pytest.fixture
def sources() -> list[torch.Tensor]:
    return [torch.randn(shape, requires_grad=True) for shape in ((2, 5, 8), (6, 8), (6, ))]


def layer_of(weight: torch.Tensor, bias: torch.Tensor | None, gelu: str | None = None):
    layer = nn.Linear(8, 6, bias=bias is not None)
    layer.weight = nn.Parameter(weight.detach(), weight.requires_grad)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach(), bias.requires_grad)
    use_onednn(layer, BOTH)
    return partial(layer, gelu=gelu)


def plain(x, weight, bias=None, gelu=None):
    y = F.linear(x, weight, bias)
    return F.gelu(y, approximate=gelu) if gelu else y


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
    x, weight, bias = sources if bias else (*sources[:2], None)
    layer = layer_of(weight, bias, gelu)
    with torch.set_grad_enabled(grad):
        assert OPERATOR in operators(lambda: layer(x))
        ours, theirs = layer(x), plain(x, weight, bias, gelu)
    close(ours, theirs)
    if grad:
        weights = torch.randn_like(ours)
        given = [source for source in (x, weight, bias) if source is not None]
        for mine, its in zip(torch.autograd.grad(ours, [x, *layer.func.parameters()], weights),
                             torch.autograd.grad(theirs, given, weights), strict=True):
            close(mine, its)


@pytest.mark.parametrize('shape', [(8, ), (3, 8), (0, 8), (2, 1, 3, 8)])
def test_any_leading_shape(sources, shape):
    x, layer = torch.randn(shape, requires_grad=True), layer_of(*sources[1:])
    ours, theirs = layer(x), F.linear(x, *sources[1:])
    close(ours, theirs)
    close(*(torch.autograd.grad(y.sum(), x)[0] for y in (ours, theirs)))


@pytest.mark.parametrize('bias', [torch.arange(12.)[::2], torch.ones(1).expand(6)], ids=['strided', 'expanded'])
def test_parameters_with_gaps(sources, bias):
    x, weight = sources[0].detach(), sources[1].detach()
    close(layer_of(weight, bias)(x), F.linear(x, weight, bias))
    strided = layer_of(weight.t().contiguous().t(), None)
    close(strided(torch.randn(5, 16)[:, ::2].copy_(x[0])), F.linear(x[0], weight))


def test_its_output_may_be_changed_in_place(sources):
    x, layer = sources[0], layer_of(*sources[1:])
    close(*(torch.autograd.grad(call(x).relu_().square().sum(), x)[0]
            for call in (layer, lambda x: F.linear(x, *sources[1:]))))


def test_nothing_is_saved_that_no_gradient_needs(sources):
    x, weight, bias = sources
    layer = layer_of(weight.detach(), bias)
    y = layer(x)
    with torch.no_grad():
        x += 1  # which the gradients of x and bias do not depend on
    y.sum().backward()
    close(x.grad, weight.sum(0).expand_as(x))


@pytest.mark.parametrize('gelu', [None, 'tanh'])
@pytest.mark.parametrize('transform', [
    pytest.param(lambda f: func.grad(lambda x: f(x).square().sum()), id='gradient'),
    pytest.param(lambda f: func.vmap(func.grad(lambda x: f(x).square().sum())), id='gradient of each sample'),
    pytest.param(lambda f: func.jacrev(lambda x: f(x).sum(0)), id='jacobian'),
    pytest.param(lambda f: lambda x: func.jvp(f, (x, ), (x, ))[1], id='forward'),
    pytest.param(lambda f: func.hessian(lambda x: f(x).square().sum()), id='hessian')])
@pytest.mark.filterwarnings('ignore:`torch.jit.script` is deprecated')  # torch's own, at its first forward gradient
def test_transforms_of_the_input(sources, transform, gelu):
    x, weight, bias = (source.detach() for source in sources)
    close(transform(layer_of(weight, bias, gelu))(x), transform(lambda x: plain(x, weight, bias, gelu))(x))


def test_transforms_of_the_parameters(sources):
    x, weight, bias = (source.detach() for source in sources)
    layer, given = layer_of(weight, bias, 'tanh'), dict(weight=weight, bias=bias)

    def loss(given, x):
        return func.functional_call(layer.func, given, (x, 'tanh')).square().sum()

    ours = func.vmap(func.grad(loss), (None, 0))(given, x)
    def expected(given, x):
        return plain(x, *given.values(), 'tanh').square().sum()

    theirs = func.vmap(func.grad(expected), (None, 0))(given, x)
    close(ours, theirs)


def test_gradients_of_gradients(sources):
    x, weight, bias = sources
    layer = layer_of(weight, bias)
    first, = torch.autograd.grad(layer(x).pow(3).sum(), layer.func.weight, create_graph=True)
    its, = torch.autograd.grad(F.linear(x, weight, bias).pow(3).sum(), weight, create_graph=True)
    close(*(torch.autograd.grad(grad.square().sum(), x)[0] for grad in (first, its)))


def test_a_dual_number_keeps_its_tangent(sources):
    x, weight, bias = (source.detach() for source in sources)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(layer_of(weight, bias)(forward_ad.make_dual(x, x))).tangent
    close(tangent, F.linear(x, weight))


@pytest.mark.filterwarnings('ignore:TF32 acceleration', 'ignore:`torch.jit.trace')  # torch's own
def test_who_knows_only_torchs_own_operators_gets_them():
    mlp, x = Mlp(8, 16, dict(type='GELU')), torch.randn(1, 5, 8)
    use_onednn(mlp, BOTH)
    with torch.no_grad():
        assert OPERATOR in operators(lambda: mlp(x))
        with torch.backends.mkldnn.flags(enabled=False):
            assert OPERATOR not in operators(lambda: mlp(x))
        with torch.autocast('cpu', torch.bfloat16):
            assert OPERATOR not in operators(lambda: mlp(x))
        graphs = (torch.jit.trace(mlp, x).inlined_graph, torch.export.export(mlp, (x, )).graph)
    for graph in graphs:
        assert 'linear' in str(graph)
        assert 'mkldnn' not in str(graph)


def test_its_arithmetic_is_counted(sources):
    layer = layer_of(*sources[1:])
    with FlopCounterMode(display=False) as counter:
        layer(sources[0]).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 10 * 8 * 6


@pytest.mark.skipif(not processor.computes_in_bfloat16(), reason='this CPU does not compute in bfloat16')
def test_bfloat16(sources):
    x, weight, bias = (source.detach().bfloat16() for source in sources)
    ours = layer_of(weight, bias, 'tanh')(x)
    assert ours.dtype == torch.bfloat16
    exact = F.gelu(F.linear(x.double(), weight.double(), bias.double()), approximate='tanh')
    torch.testing.assert_close(ours.double(), exact, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(('chosen', 'used'), [(('gelu', ), [True, False, False]), (('linear', ), [False, True, True])])
def test_only_what_is_chosen(chosen, used):
    """The activated product without gradients, with gradients, and the other product without."""
    mlp, x = Mlp(8, 16, dict(type='GELU')), torch.randn(1, 5, 8)
    use_onednn(mlp, {torch.float32: chosen})
    with torch.no_grad():
        found = [OPERATOR in operators(lambda: mlp.fc1(x, 'none'))]
    found.append(OPERATOR in operators(lambda: mlp.fc1(x, 'none')))
    with torch.no_grad():
        found.append(OPERATOR in operators(lambda: mlp.fc2(torch.randn(1, 5, 16))))
    assert found == used


def test_names_hooks_and_parameters_stay_and_it_is_undone():
    mlp, x, called = Mlp(8, 16, dict(type='GELU', approximate='tanh')), torch.randn(1, 5, 8), []
    mlp.fc1.register_forward_hook(lambda *_: called.append('fc1'))
    names, fc1, weight, expected = list(mlp.state_dict()), mlp.fc1, mlp.fc1.weight, mlp(x)
    attributes = set(vars(mlp.fc1))
    use_onednn(mlp, BOTH)
    close(mlp(x), expected)
    assert (list(mlp.state_dict()), mlp.fc1, mlp.fc1.weight) == (names, fc1, weight)
    assert isinstance(mlp.fc1, nn.Linear)
    use_torch(mlp)
    assert (type(mlp), type(mlp.fc1), set(vars(mlp.fc1))) == (Mlp, nn.Linear, attributes)
    assert torch.equal(mlp(x), expected)
    assert called == ['fc1'] * 3


def test_other_layers_are_left_alone():
    class Adapted(nn.Linear):
        pass

    mlp = Mlp(8, 16, dict(type='SiLU'))
    mlp.fc2 = Adapted(16, 8)
    use_onednn(mlp, BOTH)
    assert (type(mlp.fc1), type(mlp.fc2)) == (OneDnnLinear, Adapted)
    x = torch.randn(1, 5, 8)
    with torch.no_grad():
        close(mlp(x), mlp.fc2(F.silu(F.linear(x, mlp.fc1.weight, mlp.fc1.bias))))


def test_a_layer_put_in_place_afterwards_comes_before_the_activation():
    """As LoRA does, whose low-rank product is added to the first layer's."""
    mlp, x = Mlp(8, 16, dict(type='GELU')), torch.randn(1, 5, 8)
    use_onednn(mlp, BOTH)
    mlp.fc1 = nn.Sequential(mlp.fc1, nn.Hardtanh(-0.1, 0.1))
    with torch.no_grad():
        close(mlp(x), mlp.fc2(F.gelu(F.linear(x, *mlp.fc1[0].parameters()).clamp(-0.1, 0.1))))


def test_a_hook_that_replaces_the_input_does_not_lose_the_activation():
    mlp, x = Mlp(8, 16, dict(type='GELU')), torch.randn(1, 5, 8)
    mlp.fc1.register_forward_pre_hook(lambda module, args: (2 * args[0], ))
    with torch.no_grad():
        expected = mlp(x)
        use_onednn(mlp, BOTH)
        close(mlp(x), expected)


def test_it_computes_blocks_of_one_shape(sources):
    """Each shape costs memory for good. torch computes the rows that are left over."""
    layer = layer_of(*sources[1:])
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as record:
        for rows in (1, 2, 3, 4, 8):
            layer(torch.randn(rows, 8))
    shapes = [event.input_shapes[0] for event in record.events() if event.name == OPERATOR]
    assert shapes == [[3, 8]] * 4


def test_results_do_not_depend_on_what_came_before(monkeypatch):
    """Not on other numbers of rows, in the forward or the backward. With the size from which oneDNN is used."""
    monkeypatch.undo()
    layer, x = nn.Linear(256, 256), torch.randn(onednn.ROWS + 88, 256, requires_grad=True)
    use_onednn(layer, BOTH)

    def results() -> list[torch.Tensor]:
        y = layer(x)
        return [y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])]

    def others() -> None:
        for rows in range(onednn.ROWS, onednn.ROWS + 600, 100):
            layer(torch.randn(rows, 256)).sum().backward()

    others()
    assert OPERATOR in operators(lambda: layer(x))
    before = results()
    others()
    assert all(map(torch.equal, before, results()))
