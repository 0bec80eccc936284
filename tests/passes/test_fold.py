import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from model_states import assert_all_learn
from torch import distributed, nn

from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import StdConv2d
from vit_plugin.passes import onednn, optimize
from vit_plugin.passes.fold import Folded, fold, unfold

IMAGES = (1, 3, 40, 32)  # another grid than the native one


def hybrid(cfg: dict, **changes) -> VisionTransformer:
    """With relative positions besides, so that everything that can be folded is there."""
    model = VisionTransformer(
        **cfg, **{'pos_embed': dict(type='learned', relative=True), 'out_type': 'raw', **changes}
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return model.eval()


def only_process() -> None:
    if not distributed.is_initialized():
        distributed.init_process_group('gloo', store=distributed.HashStore(), rank=0, world_size=1)


def broadcast(model: nn.Module, name: str, new: torch.Tensor) -> None:
    """As DDP writes to every rank but the first: a collective's copy into the storage."""
    only_process()
    distributed.broadcast(new, 0)
    parameter = model.get_parameter(name)
    parameter.untyped_storage().copy_(new.untyped_storage())


def all_reduce(model: nn.Module, name: str, new: torch.Tensor) -> None:
    only_process()
    parameter = model.get_parameter(name)
    with torch.inference_mode():
        parameter.data.mul_(3.0).add_(1.0)
    distributed.all_reduce(parameter.data)
    new.copy_(parameter)


def replace(model: nn.Module, name: str, new: torch.Tensor) -> None:
    owner, _, leaf = name.rpartition('.')
    setattr(model.get_submodule(owner), leaf, nn.Parameter(new))


WRITES = {
    'in place': lambda model, name, new: model.get_parameter(name).copy_(new),
    'data replaced': lambda model, name, new: setattr(
        model.get_parameter(name), 'data', new.clone()
    ),
    'past autograd': lambda model, name, new: model.get_parameter(name).data.copy_(new),
    'past torch': lambda model, name, new: (
        model.get_parameter(name).detach().numpy().__setitem__(..., new.numpy())
    ),
    'parameter replaced': replace,
    'loaded': lambda model, name, new: model.load_state_dict({**model.state_dict(), name: new}),
    'broadcast': broadcast,
    'all_reduce': all_reduce,
}
PARAMETERS = [
    'pos_embed',
    'patch_embed.backbone.stem.conv.weight',
    'patch_embed.backbone.stages.0.blocks.0.conv2.weight',
    'blocks.0.attn.rel_pos_h',
]


# Changes that a frozen model sees, too.
SEEN = {'in place', 'data replaced', 'parameter replaced', 'loaded'}


@pytest.mark.parametrize(
    ('write', 'frozen'),
    [(write, frozen) for write in WRITES for frozen in {False, write in SEEN}],
)
@pytest.mark.parametrize('name', PARAMETERS)
def test_it_follows_every_write(tiny_hybrid, name, write, frozen):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES)
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


def test_it_is_computed_once_while_the_grid_stays(tiny_hybrid):
    model, calls = hybrid(tiny_hybrid), []
    for module in model.modules():
        if isinstance(module, StdConv2d):
            kernel = module.kernel
            module.kernel = Folded(lambda weight, kernel=kernel: calls.append(0) or kernel(weight))
    table = model.position.table
    model.position.table = Folded(lambda *args: calls.append(1) or table(*args))
    with torch.no_grad():
        for side in (32, 32, 40, 40):
            model(torch.randn(1, 3, 32, side))
    assert (calls.count(0), calls.count(1)) == (
        sum(isinstance(m, StdConv2d) for m in model.modules()),
        2,
    )


def test_the_parameters_of_a_frozen_model_are_not_read(tiny_hybrid, monkeypatch):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES)
    fold(model, frozen=True)
    with torch.no_grad():
        first = model(images)[0]
        monkeypatch.delattr(torch, 'equal')
        assert (model(images)[0] == first).all()


def test_names_and_state_stay_and_it_is_undone(tiny_hybrid):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES)
    state, attributes = (
        model.state_dict(),
        {name: set(vars(module)) for name, module in model.named_modules()},
    )
    with torch.no_grad():
        plain = model(images)[0]
        fold(model), fold(model)
        assert torch.equal(model(images)[0], plain)
    assert model.state_dict().keys() == state.keys()
    assert any(
        isinstance(value, Folded) for module in model.modules() for value in vars(module).values()
    )
    unfold(model)
    assert {name: set(vars(module)) for name, module in model.named_modules()} == attributes


@pytest.mark.parametrize(
    'copied', [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))]
)
def test_a_copy_is_its_own(tiny_hybrid, copied):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES)
    fold(model)
    with torch.no_grad():
        before = model(images)[0]
        other = copied(model)
        for parameter in other.parameters():
            parameter.zero_()
        assert torch.equal(model(images)[0], before)
        assert not torch.equal(other(images)[0], before)


def test_what_learns_gets_its_gradient(tiny_hybrid):
    model = hybrid(tiny_hybrid)
    fold(model)
    with torch.inference_mode():
        model(torch.randn(IMAGES))
    model.train()(torch.randn(IMAGES))[0].square().sum().backward()
    assert_all_learn(model)


# vmap over attention and the max-pool warns.
@pytest.mark.filterwarnings('ignore:There is a performance drop')
def test_ensembles(tiny_hybrid):
    images = torch.randn(IMAGES)
    models = [hybrid(tiny_hybrid) for _ in range(2)]
    for model in models:
        fold(model)
    params, buffers = torch.func.stack_module_state(models)
    with torch.no_grad():
        outs = torch.vmap(lambda p, b: torch.func.functional_call(models[0], (p, b), (images,))[0])(
            params, buffers
        )
        torch.testing.assert_close(outs[1], models[1](images)[0], atol=1e-4, rtol=1e-4)


def test_moved_and_cast(tiny_hybrid):
    model, images = hybrid(tiny_hybrid), torch.randn(IMAGES)
    fold(model)
    with torch.no_grad():
        single = model(images)[0]
        torch.testing.assert_close(
            model.double()(images.double())[0].float(), single, atol=1e-4, rtol=1e-4
        )


def test_threads_of_all_sizes_at_once(tiny_hybrid, monkeypatch):
    """One grid is kept, so that threads throw away what others read; with all passes."""
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)
    model = optimize(hybrid(tiny_hybrid))
    images = [
        torch.randn(1, 3, 8 * rows, 8 * columns) for rows in range(1, 7) for columns in range(1, 7)
    ]
    with torch.no_grad():
        expected = [model(image)[0] for image in images]

    def run(turn: int) -> bool:
        with torch.no_grad():
            i = turn * 7 % len(images)
            return torch.equal(model(images[i])[0], expected[i])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, range(6 * len(images))))
