import copy
import pickle

import pytest
import torch
from torch import nn

from vit_plugin.models.layers.derived import Derives


class Doubled(Derives):

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.computed = 0

    def double(self) -> torch.Tensor:
        self.computed += 1
        return 2 * self.weight

    def forward(self) -> torch.Tensor:
        return self.derived(self.double, self.weight)


def step(module: Doubled) -> None:
    torch.optim.SGD(nn.Linear(1, 1).parameters()).step()  # of the student
    module.weight.data.fill_(3.)  # by which the teacher follows, past autograd


CHANGES = {
    'in place': lambda module: module.weight.fill_(3.),
    'replaced': lambda module: setattr(module.weight, 'data', torch.full((2, ), 3.)),
    'loaded': lambda module: module.load_state_dict({'weight': torch.full((2, ), 3.)}),
    'swapped in, then eval()': lambda module: (module.weight.data.fill_(3.), module.eval()),
    'after a step': step,
}


@pytest.mark.parametrize('change', CHANGES.values(), ids=CHANGES)
def test_it_is_computed_once_and_again_after_a_change(change):
    module = Doubled().eval()
    with torch.no_grad():
        assert [module().tolist() for _ in range(3)] == [[2., 2.]] * 3
        assert module.computed == 1
        change(module)
        assert [module().tolist() for _ in range(3)] == [[6., 6.]] * 3
        assert module.computed == 2


def test_what_needs_a_gradient_is_computed_each_time():
    module = Doubled().train()
    module().sum().backward()
    module().sum().backward()
    assert module.weight.grad.tolist() == [4., 4.]
    module.eval()
    assert module().requires_grad  # in eval mode too, with the gradients on
    module.weight.requires_grad = False
    before = module.computed
    module(), module()  # frozen
    assert module.computed == before + 1


def test_moved_with_the_module():
    module = Doubled().eval()
    with torch.no_grad():
        module()
        assert module.double().dtype == torch.float32
        assert module.to(torch.float64)().dtype == torch.float64


@pytest.mark.parametrize('copied', [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_copy_keeps_nothing(copied):
    module = Doubled().eval()
    with torch.no_grad():
        module()
        assert module._kept
        other = copied(module)
        assert not other._kept
        other.weight.fill_(5.)
        assert (other().tolist(), module().tolist()) == ([10., 10.], [2., 2.])


def test_of_inference_mode_it_can_train_later():
    module = Doubled().eval()
    with torch.inference_mode():
        module()
    with torch.no_grad():
        assert not module().is_inference()
