"""``fold`` caches standardized kernels and position tables.

They must be computed again whenever a parameter changes, and only then.
"""

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from model_states import assert_all_learn
from torch import distributed, nn

from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import StdConv2d
from vit_plugin.passes import onednn, optimize
from vit_plugin.passes.fold import Folded, fold, unfold

IMAGES_SHAPE = (1, 3, 40, 32)  # their grid differs from the native one, so tables are resized


def hybrid(cfg: dict, **changes) -> VisionTransformer:
    """A model with random parameters whose kernels and positions can be folded.

    By default, its positions are a learned table and ViTDet's relative positions.
    """
    model = VisionTransformer(
        **cfg, **{'pos_embed': dict(type='learned', relative=True), 'out_type': 'raw', **changes}
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return model.eval()


def init_process_group() -> None:
    """Start a group of this process alone, in which collectives can be called."""
    if not distributed.is_initialized():
        distributed.init_process_group('gloo', store=distributed.HashStore(), rank=0, world_size=1)


def write_storage(model: nn.Module, name: str, new: torch.Tensor) -> None:
    """Write into the storage, as DDP's broadcast does on all ranks except the first.

    A broadcast itself would write nothing here, since the only rank of a group is its first.
    """
    parameter = model.get_parameter(name)
    parameter.untyped_storage().copy_(new.untyped_storage())


def all_reduce(model: nn.Module, name: str, new: torch.Tensor) -> None:
    """Change a parameter, bypassing autograd, and all-reduce it, which one rank does not change.

    The result is also written to ``new``, with which the caller compares the parameter.
    """
    init_process_group()
    parameter = model.get_parameter(name)
    with torch.inference_mode():
        parameter.data.mul_(3.0).add_(1.0)
    distributed.all_reduce(parameter.data)
    new.copy_(parameter)


def replace(model: nn.Module, name: str, new: torch.Tensor) -> None:
    """Assign a new parameter."""
    owner, _, leaf = name.rpartition('.')
    setattr(model.get_submodule(owner), leaf, nn.Parameter(new))


# Ways of changing a parameter: functions of the model, the parameter's name and the new values.
WRITES = {
    'in place': lambda model, name, new: model.get_parameter(name).copy_(new),
    'data replaced': lambda model, name, new: setattr(
        model.get_parameter(name), 'data', new.clone()
    ),
    'bypassing autograd': lambda model, name, new: model.get_parameter(name).data.copy_(new),
    'bypassing torch': lambda model, name, new: (
        model.get_parameter(name).detach().numpy().__setitem__(..., new.numpy())
    ),
    'parameter replaced': replace,
    'loaded': lambda model, name, new: model.load_state_dict({**model.state_dict(), name: new}),
    'storage written': write_storage,
    'all_reduce': all_reduce,
}
PARAMETERS = [
    'pos_embed',
    'patch_embed.backbone.stem.conv.weight',
    'patch_embed.backbone.stages.0.blocks.0.conv2.weight',
    'blocks.0.attn.rel_pos_h',
    'blocks.0.attn.rel_pos_bias.relative_position_bias_table',
]
# Changes that are noticed without comparing values. With `frozen=True`, only these are: the others
# leave both the tensor and its version counter as they are.
NOTICED_IF_FROZEN = {'in place', 'data replaced', 'parameter replaced', 'loaded'}


@pytest.mark.parametrize(
    ('write', 'frozen'),
    [
        *((write, False) for write in WRITES),
        *((write, True) for write in sorted(NOTICED_IF_FROZEN)),
    ],
)
@pytest.mark.parametrize('name', PARAMETERS)
def test_outputs_follow_every_change_of_a_parameter(tiny_hybrid, name, write, frozen):
    relative = 'bias' if 'rel_pos_bias' in name else True
    model = hybrid(tiny_hybrid, pos_embed=dict(type='learned', relative=relative))
    images = torch.randn(IMAGES_SHAPE)
    fold(model, frozen)
    with torch.no_grad():
        before = model(images)[0]
        new = torch.randn_like(model.get_parameter(name))
        WRITES[write](model, name, new)
        after = model(images)[0]
        assert torch.equal(model.get_parameter(name), new)
        unfold(model)
        assert torch.equal(after, model(images)[0])
    assert not torch.equal(before, after)


def test_folded_values_are_computed_once_while_the_grid_stays(tiny_hybrid):
    model, calls = hybrid(tiny_hybrid), Counter()

    def counted(name: str, function: Callable) -> Folded:
        def call(*args):
            calls[name] += 1
            return function(*args)

        return Folded(call)

    # This does by hand what `fold` does, so that the methods behind the cache are counted.
    convolutions = [module for module in model.modules() if isinstance(module, StdConv2d)]
    for convolution in convolutions:
        convolution.kernel = counted('kernel', convolution.kernel)
    model.position.table = counted('table', model.position.table)
    with torch.no_grad():
        for width in (32, 32, 40, 40):
            model(torch.randn(1, 3, 32, width))
    # Kernels do not depend on the grid; the table is resized for each of the two.
    assert calls == dict(kernel=len(convolutions), table=2)


def test_parameters_of_a_frozen_model_are_not_compared(tiny_hybrid, monkeypatch):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES_SHAPE)
    fold(model, frozen=True)
    with torch.no_grad():
        first = model(images)[0]
        monkeypatch.delattr(torch, 'equal')  # with which values are compared
        assert (model(images)[0] == first).all()


def test_folding_keeps_names_and_is_undone(tiny_hybrid):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES_SHAPE)
    state = model.state_dict()
    attributes = {name: set(vars(module)) for name, module in model.named_modules()}
    with torch.no_grad():
        plain = model(images)[0]
        fold(model)
        fold(model)  # a second call changes nothing
        assert torch.equal(model(images)[0], plain)
    assert model.state_dict().keys() == state.keys()
    assert any(
        isinstance(value, Folded) for module in model.modules() for value in vars(module).values()
    )
    unfold(model)
    assert {name: set(vars(module)) for name, module in model.named_modules()} == attributes


@pytest.mark.parametrize(
    'copy_model', [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))]
)
def test_a_copy_does_not_share_the_cache(tiny_hybrid, copy_model):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES_SHAPE)
    fold(model)
    with torch.no_grad():
        before = model(images)[0]
        copied = copy_model(model)
        for parameter in copied.parameters():
            parameter.zero_()
        assert torch.equal(model(images)[0], before)
        assert not torch.equal(copied(images)[0], before)


def test_folded_models_learn(tiny_hybrid):
    model = hybrid(tiny_hybrid)
    fold(model)
    with torch.inference_mode():  # what is cached here must not be used in training
        model(torch.randn(IMAGES_SHAPE))
    model.train()(torch.randn(IMAGES_SHAPE))[0].square().sum().backward()
    assert_all_learn(model)


# Raised by vmap over attention and max-pooling.
@pytest.mark.filterwarnings('ignore:There is a performance drop')
def test_folded_models_can_be_stacked_for_vmap(tiny_hybrid):
    images = torch.randn(IMAGES_SHAPE)
    models = [hybrid(tiny_hybrid) for _ in range(2)]
    for model in models:
        fold(model)
    params, buffers = torch.func.stack_module_state(models)
    with torch.no_grad():
        outs = torch.vmap(lambda p, b: torch.func.functional_call(models[0], (p, b), (images,))[0])(
            params, buffers
        )
        torch.testing.assert_close(outs[1], models[1](images)[0], atol=1e-4, rtol=1e-4)


def test_a_folded_model_can_be_cast(tiny_hybrid):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES_SHAPE)
    fold(model)
    with torch.no_grad():
        single = model(images)[0]
        torch.testing.assert_close(
            model.double()(images.double())[0].float(), single, atol=1e-4, rtol=1e-4
        )


def test_concurrent_threads_get_correct_outputs(tiny_hybrid, monkeypatch):
    """Each cache keeps one grid, so that threads replace what others are about to use.

    All passes are applied.
    """
    # So that oneDNN also runs the MLPs of this tiny model, where it is available.
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)
    model = optimize(hybrid(tiny_hybrid))
    images = [
        torch.randn(1, 3, 8 * rows, 8 * columns) for rows in range(1, 7) for columns in range(1, 7)
    ]
    with torch.no_grad():
        expected = [model(image)[0] for image in images]

    def is_correct(attempt: int) -> bool:
        with torch.no_grad():
            i = attempt * 7 % len(images)  # neighboring attempts have different grids
            return torch.equal(model(images[i])[0], expected[i])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(is_correct, range(6 * len(images))))
