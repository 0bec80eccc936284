"""MLPs with oneDNN's fused GELU: when they are fused, and that they compute the same."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import func, nn
from torch.autograd import forward_ad
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.models.layers import Mlp
from vit_plugin.passes import onednn, processor
from vit_plugin.passes.onednn import OneDnnMlp, convert_mlps, padded_rows, use_onednn, use_torch

OPERATOR = 'mkldnn::_linear_pointwise'

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason='torch has no oneDNN here')


def test_the_private_operator_has_the_expected_arguments():
    """In the torch that the tests install. Without the operator, the pass does nothing."""
    schema = torch.ops.mkldnn._linear_pointwise.default._schema
    assert [argument.name for argument in schema.arguments] == [
        'X',
        'W',
        'B',
        'attr',
        'scalars',
        'algorithm',
    ]


@pytest.fixture(autouse=True)
def any_size(monkeypatch) -> None:
    """Fuse tiny inputs too, for which the pass would leave the work to torch."""
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)


@pytest.fixture
def mlp() -> Mlp:
    """A converted MLP."""
    mlp = Mlp(8, 16, dict(type='GELU', approximate='tanh'))
    convert_mlps(mlp)
    return mlp


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(2, 5, 8)


def activated(mlp: Mlp, x: torch.Tensor) -> torch.Tensor:
    """The output of the first layer and its activation."""
    second, mlp.fc2 = mlp.fc2, nn.Identity()
    out = mlp(x)
    mlp.fc2 = second
    return out


def is_fused(call: Callable) -> bool:
    """True if a call runs oneDNN's fused operator."""
    with profile(activities=[ProfilerActivity.CPU]) as record:
        call()
    return OPERATOR in {event.key for event in record.key_averages()}


def assert_close(ours, theirs) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('approximate', ['none', 'tanh'])
@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('shape', [(8,), (3, 8), (0, 8), (2, 1, 3, 8), (37, 8)])
def test_outputs_equal_torchs_linear_and_gelu(approximate, bias, shape):
    mlp, x = Mlp(8, 16, dict(type='GELU', approximate=approximate), bias=bias), torch.randn(shape)
    with torch.no_grad():
        expected = mlp(x)
        convert_mlps(mlp)
        assert is_fused(lambda: mlp(x))
        assert_close(mlp(x), expected)


def test_small_inputs_are_not_fused(mlp, monkeypatch):
    with torch.no_grad():
        monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 3 * 8 * 16)
        assert is_fused(lambda: mlp(torch.randn(3, 8)))
        assert not is_fused(lambda: mlp(torch.randn(2, 8)))


@pytest.mark.parametrize(
    ('capability', 'flags', 'expected'),
    [
        ('AVX512', 'avx512bw amx_tile', OneDnnMlp),
        ('AVX512', 'avx512bw', OneDnnMlp),
        ('AVX2', 'avx512bw amx_tile', Mlp),
        ('DEFAULT', '', Mlp),
    ],
)
def test_mlps_are_converted_by_instruction_set(monkeypatch, capability, flags, expected):
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability', lambda: capability)
    monkeypatch.setattr(processor, '_cpuinfo', lambda: dict(flags=flags))
    processor.instruction_set.cache_clear()
    mlp = Mlp(8, 16, dict(type='GELU'))
    use_onednn(mlp)
    processor.instruction_set.cache_clear()
    assert type(mlp) is expected


@torch.no_grad()
@pytest.mark.skipif(
    not processor.computes_in_bfloat16(), reason='this CPU does not compute in bfloat16'
)
def test_bfloat16_is_fused(mlp, x):
    mlp, x = mlp.bfloat16(), x.bfloat16()
    assert is_fused(lambda: mlp(x))
    exact = F.gelu(
        F.linear(x.double(), mlp.fc1.weight.double(), mlp.fc1.bias.double()), approximate='tanh'
    )
    torch.testing.assert_close(activated(mlp, x).double(), exact, rtol=1e-2, atol=1e-2)


def test_training_is_not_fused(mlp, x):
    assert not is_fused(lambda: mlp(x).sum().backward())
    mlp.requires_grad_(False)
    assert not is_fused(lambda: mlp(x))  # also frozen layers, while gradients are enabled


@torch.no_grad()
@pytest.mark.filterwarnings('ignore:TF32 acceleration', 'ignore:`torch.jit')  # of torch
def test_tracers_and_autocast_are_not_fused(mlp, x):
    assert is_fused(lambda: mlp(x))
    with torch.backends.mkldnn.flags(enabled=False):
        assert not is_fused(lambda: mlp(x))
    with torch.autocast('cpu', torch.bfloat16):
        assert not is_fused(lambda: mlp(x))
    for graph in (torch.jit.trace(mlp, x).inlined_graph, torch.export.export(mlp, (x,)).graph):
        assert 'linear' in str(graph)
        assert 'mkldnn' not in str(graph)
    assert 'call_module[target=fc1]' in str(torch.fx.symbolic_trace(mlp).graph)


@torch.no_grad()
# Raised by torch at the first forward gradient.
@pytest.mark.filterwarnings('ignore:`torch.jit.script` is deprecated')
def test_function_transforms_give_the_results_of_a_plain_mlp(mlp, x):
    plain = Mlp(8, 16, dict(type='GELU', approximate='tanh'))
    plain.load_state_dict(mlp.state_dict())
    for transform in (
        func.vmap,
        func.jacrev,
        func.jacfwd,
        func.hessian,
        lambda f: lambda x: func.jvp(f, (x,), (x,)),
    ):
        ours, theirs = (
            transform(lambda x, model=model: model(x))(x[0, :2]) for model in (mlp, plain)
        )
        assert_close(ours, theirs)
    parameters = {
        name: value[None].repeat(3, *[1] * value.dim()) for name, value in mlp.named_parameters()
    }
    ours, theirs = (
        func.vmap(lambda p, model=model: func.functional_call(model, p, (x,)))(parameters)
        for model in (mlp, plain)
    )
    assert_close(ours, theirs)
    with forward_ad.dual_level():
        assert_close(
            *(
                forward_ad.unpack_dual(model(forward_ad.make_dual(x, x))).tangent
                for model in (mlp, plain)
            )
        )


@torch.no_grad()
def test_conversion_keeps_names_and_is_undone():
    mlp, x = Mlp(8, 16, dict(type='GELU')), torch.randn(1, 5, 8)
    before, names, expected = vars(mlp).keys(), list(mlp.state_dict()), mlp(x)
    convert_mlps(mlp)
    assert (type(mlp), type(mlp.fc1), list(mlp.state_dict()), vars(mlp).keys()) == (
        OneDnnMlp,
        nn.Linear,
        names,
        before,
    )
    use_torch(mlp)
    assert type(mlp) is Mlp
    assert torch.equal(mlp(x), expected)


@torch.no_grad()
def test_hooks_get_the_usual_inputs_and_outputs(mlp, x):
    calls = []
    for layer in (mlp.fc1, mlp.act):
        handle = layer.register_forward_hook(lambda module, args, out: calls.append((module, out)))
        mlp(x)
        handle.remove()
    assert [module for module, _ in calls] == [mlp.fc1, mlp.act]
    assert_close(calls[0][1], F.linear(x, mlp.fc1.weight, mlp.fc1.bias))
    handle = mlp.fc1.register_forward_pre_hook(lambda module, args: (2 * args[0],))
    assert_close(
        activated(mlp, x), F.gelu(F.linear(2 * x, mlp.fc1.weight, mlp.fc1.bias), approximate='tanh')
    )
    handle.remove()
    with FlopCounterMode(display=False) as counter:
        mlp(x)
    assert counter.get_total_flops() == 2 * 2 * 10 * 8 * 16  # two layers, 2 FLOPs per multiply-add
    assert is_fused(lambda: mlp(x))


@torch.no_grad()
@pytest.mark.parametrize('activation', [nn.SiLU(), nn.Sequential(nn.GELU())])
def test_an_activation_that_replaced_the_gelu_is_used(mlp, x, activation):
    mlp.act = activation
    assert_close(activated(mlp, x), activation(F.linear(x, mlp.fc1.weight, mlp.fc1.bias)))


@torch.no_grad()
def test_layers_of_another_class_are_called(mlp, x):
    """For example LoRA's, which add their product before the activation."""
    mlp.fc1 = nn.Sequential(mlp.fc1, nn.Hardtanh(-0.1, 0.1))
    assert_close(
        activated(mlp, x),
        F.gelu(F.linear(x, *mlp.fc1[0].parameters()).clamp(-0.1, 0.1), approximate='tanh'),
    )


@pytest.mark.parametrize(
    ('rows', 'padded'), [(0, 0), (1, 1), (31, 31), (33, 34), (197, 200), (512, 512), (788, 800)]
)
def test_rows_are_padded(rows, padded):
    assert padded_rows(rows) == padded


# Prints by how many MiB the peak memory grows over 450 sizes of inputs, with the pass (`fused`) or
# without.
GROWTH = """
import sys, torch
from benchmarks.measuring.one_image import peak_resident
from vit_plugin.models.layers import Mlp
from vit_plugin.passes.onednn import convert_mlps
mlp = Mlp(384, 1536, dict(type='GELU'))
if sys.argv[1] == 'fused':
    convert_mlps(mlp)
with torch.inference_mode():
    for rows in (2100, 460):
        mlp(torch.randn(rows, 384))
    before = peak_resident()
    for i in range(450):
        mlp(torch.randn(460 + i * 18 // 5, 384))
print((peak_resident() - before) / 2**20)
"""


@pytest.mark.nightly
def test_many_input_sizes_take_no_more_memory_than_without_the_pass():
    plain, fused = (
        float(subprocess.check_output([sys.executable, '-c', GROWTH, form]))
        for form in ('plain', 'fused')
    )
    assert fused < plain + 64  # MiB


@torch.no_grad()
def test_many_rows_are_computed_in_parts(mlp, monkeypatch):
    x = torch.randn(3, 7, 8)
    expected = mlp(x)
    monkeypatch.setattr(onednn, 'MAX_ROWS', 4)
    assert_close(mlp(x), expected)
    with profile(activities=[ProfilerActivity.CPU]) as record:
        mlp(x)
    num_parts = sum(event.name == OPERATOR for event in record.events())
    assert num_parts == 6  # 21 rows in parts of at most 4


def test_rows_are_padded_to_few_sizes_and_by_little():
    """oneDNN keeps memory for each size."""
    assert len({padded_rows(rows) for rows in range(256, 512)}) == 17
    assert len({padded_rows(rows) for rows in range(256, 65536)}) == 8 * 16 + 1
    assert all(rows <= padded_rows(rows) <= rows * 17 / 16 for rows in range(1, 5000))


@torch.no_grad()
def test_results_do_not_depend_on_earlier_inputs(mlp, x):
    before = mlp(x)
    for rows in range(1, 600, 7):
        mlp(torch.randn(rows, 8))
    assert torch.equal(mlp(x), before)
