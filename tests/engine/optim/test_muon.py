"""The optimizer Muon: its steps, its state, and its settings."""

from copy import deepcopy

import pytest
import torch
from mmengine.optim import build_optim_wrapper
from ranks import on_ranks
from rejection import rejects
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from vit_plugin.engine import Muon
from vit_plugin.engine.optim.muon import QUINTIC, RMS, orthogonalize


class Network(nn.Module):
    """A model with matrices and with parameters that Muon leaves to AdamW."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.tall, self.wide = nn.Linear(8, 12), nn.Linear(12, 4)
        self.tokens = nn.Parameter(torch.randn(1, 2, 12))

    def forward(self, images: Tensor) -> Tensor:
        return self.wide(self.tall(self.conv(images).mean((2, 3))) + self.tokens.sum((0, 1)))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, first: int, last: int) -> None:
    """Train from iteration ``first`` to ``last``, with the same images for the same iteration."""
    for i in range(first, last):
        images = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(i))
        optimizer.zero_grad()
        model(images).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize('shape', [(40, 24), (16, 16), (8, 72), (72, 8)])
def test_orthogonalize_applies_the_quintic_to_singular_values(shape):
    matrix = torch.randn(shape, dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    values[-1] = 0  # as in the gradient of a layer with linearly dependent inputs
    matrix = left * values @ right
    values = values / values.norm()
    for _ in range(5):
        values = sum(
            factor * values**power for factor, power in zip(QUINTIC, (1, 3, 5), strict=True)
        )
    assert 0.6 < values[:-1].min() < values.max() < 1.25
    torch.testing.assert_close(
        orthogonalize(matrix.float()), (left * values @ right).float(), rtol=0, atol=1e-4
    )


def test_step_of_a_matrix_follows_the_formula():
    weight, gradients = torch.randn(6, 2, 3, 3), torch.randn(2, 6, 2, 3, 3)
    parameter = nn.Parameter(weight.clone())
    optimizer = Muon([parameter], lr=0.1, momentum=0.9, weight_decay=0.5)
    momentum = torch.zeros(6, 18)
    for gradient in gradients:
        parameter.grad = gradient
        optimizer.step()
        momentum = 0.9 * momentum + gradient.flatten(1)
        step = orthogonalize(gradient.flatten(1) + 0.9 * momentum).view_as(weight)
        # The longer side of the weight as a matrix, (6, 18), is 18.
        weight = weight - 0.1 * 0.5 * weight - 0.1 * RMS * 18**0.5 * step
        torch.testing.assert_close(parameter.detach(), weight)


def test_fixed_norm_makes_steps_independent_of_the_scale():
    weight, gradients = torch.randn(6, 2, 3, 3), torch.randn(2, 6, 2, 3, 3)
    parameters = [nn.Parameter(scale * weight) for scale in (1.0, 40.0)]
    for parameter in parameters:
        optimizer = Muon(
            [dict(params=[parameter], fixed_norm=True)], lr=0.1, momentum=0.9, weight_decay=0.5
        )
        for gradient in gradients:
            parameter.grad = gradient
            optimizer.step()
    torch.testing.assert_close(*parameters)

    # With a rate of 0, a step only sets the norm, to 1 for each row on average.
    Muon(parameters[:1], lr=0.0, fixed_norm=True).step()
    assert parameters[0].norm().item() == pytest.approx(6**0.5)


def test_fixed_norm_leaves_zeros_as_they_are():
    parameter = nn.Parameter(torch.zeros(6, 4))
    optimizer = Muon([parameter], lr=0.0, fixed_norm=True)
    parameter.grad = torch.randn(6, 4)
    optimizer.step()
    assert torch.equal(parameter.detach(), torch.zeros(6, 4))


def test_other_parameters_are_stepped_by_adamw():
    torch.manual_seed(0)
    model = Network()
    other = deepcopy(model)
    names = ('tokens', 'conv.bias', 'tall.bias', 'wide.bias')
    muon = Muon(model.parameters(), lr=0.01, weight_decay=0.1)
    adamw = torch.optim.AdamW(
        [other.get_parameter(name) for name in names], 0.01, (0.9, 0.99), weight_decay=0.1
    )
    for i in range(3):
        for name in names:
            gradient = torch.randn(
                model.get_parameter(name).shape, generator=torch.Generator().manual_seed(i)
            )
            model.get_parameter(name).grad = gradient
            other.get_parameter(name).grad = gradient.clone()
        muon.step()
        adamw.step()
    for name in names:
        torch.testing.assert_close(model.get_parameter(name), other.get_parameter(name))


def test_saved_state_continues_bit_for_bit(tmp_path):
    torch.manual_seed(0)
    model = Network()
    optimizer = Muon(model.parameters(), lr=0.01)
    train(model, optimizer, 0, 2)
    torch.save((model.state_dict(), optimizer.state_dict()), tmp_path / 'state.pth')
    train(model, optimizer, 2, 4)

    loaded = Network()
    resumed = Muon(loaded.parameters(), lr=0.01)
    weights, state = torch.load(tmp_path / 'state.pth', weights_only=True)
    loaded.load_state_dict(weights)
    resumed.load_state_dict(state)
    train(loaded, resumed, 2, 4)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, loaded.get_parameter(name)), name


def _train_sharded() -> None:
    """Compare steps of a sharded network with those of a plain one."""
    torch.manual_seed(0)
    model = Network()
    plain = deepcopy(model)
    fully_shard(model, mesh=init_device_mesh('cpu', (2,)))
    # Both ranks have the same images, so the mean gradient is that of one rank.
    for network in (model, plain):
        with_fixed_norm = {'conv.weight', 'tall.weight'}
        groups = [
            dict(
                params=[
                    parameter
                    for name, parameter in network.named_parameters()
                    if (name in with_fixed_norm) is fixed_norm
                ],
                fixed_norm=fixed_norm,
            )
            for fixed_norm in (True, False)
        ]
        train(network, Muon(groups, lr=0.01), 0, 3)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(
            model.get_parameter(name).full_tensor(), parameter.detach(), msg=name
        )


@pytest.mark.nightly
def test_sharded_matrices_take_the_same_steps(tmp_path):
    on_ranks(2, tmp_path, _train_sharded)


def test_config_builds_muon_with_custom_keys():
    wrapper = build_optim_wrapper(
        Network(),
        dict(
            type='vit_plugin.OptimWrapper',
            optimizer=dict(type='vit_plugin.Muon', lr=0.01, weight_decay=0.1),
            paramwise_cfg=dict(
                flat_decay_mult=0.0,
                custom_keys={'tall': dict(lr_mult=3.0, decay_mult=2.0, fixed_norm=True)},
            ),
        ),
    )
    assert isinstance(wrapper.optimizer, Muon)
    tall = [group for group in wrapper.param_groups if group['lr'] == pytest.approx(0.03)]
    assert [group['weight_decay'] for group in tall] == [pytest.approx(0.2)] * 2  # weight and bias
    assert [group['lr'] for group in wrapper.param_groups if group['fixed_norm']] == [
        pytest.approx(0.03)
    ] * 2


def test_betas_may_be_a_list_as_from_a_config():
    muon = Muon([nn.Parameter(torch.ones(3))], betas=[0.8, 0.9])
    muon.param_groups[0]['params'][0].grad = torch.ones(3)
    muon.step()
    with rejects('betas has 1 item|betas='):
        Muon([nn.Parameter(torch.ones(3))], betas=[0.8])


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [(dict(lr=-1.0), 'lr'), (dict(momentum=1.0), 'momentum'), (dict(nesterov=True), 'nesterov')],
)
def test_wrong_arguments_raise(arguments, words):
    with rejects(words):
        Muon([nn.Parameter(torch.ones(2, 2))], **arguments)


@pytest.mark.parametrize(
    ('group', 'words'),
    [
        (dict(lr=-3), 'lr=-3 must be'),
        (dict(lrs=1.0), 'did you mean lr?'),
        (dict(betas=(0.9, 2.0)), 'betas'),
    ],
)
def test_wrong_settings_of_groups_raise(group, words):
    with rejects(f'^Muon: params.*{words}'):
        Muon([dict(params=[nn.Parameter(torch.ones(2, 2))], **group)])
