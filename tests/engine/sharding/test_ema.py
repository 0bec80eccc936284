"""Moving averages of weights, compared with those of MMEngine, and of sharded models."""

from copy import deepcopy

import mmengine.hooks
import pytest
import torch
from rejection import rejects
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from vit_plugin.engine import EMAHook
from vit_plugin.engine.sharding import Sharding, shard
from vit_plugin.measure.planning.traced_step import pretended_ranks
from vit_plugin.models import VisionTransformer


class Run:
    """What EMA hooks need of a runner. The model is changed at random instead of trained."""

    def __init__(self, model: nn.Module, resume: bool = False) -> None:
        self.model, self.max_iters, self.max_epochs, self._resume, self.iter = (
            model,
            12,
            3,
            resume,
            0,
        )

    @property
    def epoch(self) -> int:
        return self.iter // 4

    def train(self, hook: mmengine.hooks.EMAHook, until: int) -> None:
        hook.before_train(self)
        while self.iter < until:
            torch.manual_seed(self.iter)
            self.model(torch.randn(4, 3))  # updates the buffers of the norm
            for parameter in self.model.parameters():
                parameter.data.add_(torch.randn_like(parameter))
            hook.after_train_iter(self, self.iter)
            self.iter += 1

    def save(self, hook: mmengine.hooks.EMAHook) -> dict:
        checkpoint = {'state_dict': self.model.state_dict()}
        hook.before_save_checkpoint(self, checkpoint)
        return deepcopy(checkpoint)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


def states(hook_class: type[mmengine.hooks.EMAHook], options: dict) -> list[dict[str, Tensor]]:
    """The states in a validation, in a checkpoint, and at the end after resuming from that.

    A checkpoint has two: the averages and the trained weights.
    """
    hook, run = hook_class(**options), Run(model())
    hook.before_run(run)
    run.train(hook, 7)
    hook.before_val_epoch(run)
    validated = deepcopy(run.model.state_dict())
    hook.after_val_epoch(run)
    saved = run.save(hook)
    hook, resumed = hook_class(**options), Run(model(), resume=True)
    hook.before_run(resumed)
    content = deepcopy(saved)
    hook.after_load_checkpoint(resumed, content)
    resumed.model.load_state_dict(content['state_dict'])
    resumed.iter = 7
    resumed.train(hook, 12)
    return [validated, *saved.values(), *resumed.save(hook).values()]


@pytest.mark.filterwarnings('ignore:The value of momentum')
@pytest.mark.parametrize(
    'options',
    [
        dict(momentum=0.3),
        dict(momentum=0.3, interval=2, begin_iter=3),
        dict(begin_epoch=2, update_buffers=True),
        dict(update_buffers=True),
        dict(ema_type='MomentumAnnealingEMA', gamma=2, interval=3),
        dict(ema_type='StochasticWeightAverage', device='cpu'),
    ],
)
def test_averages_equal_those_of_mmengine(options):
    actual, expected = states(EMAHook, options), states(mmengine.hooks.EMAHook, options)
    assert [list(state) for state in actual] == [list(state) for state in expected]
    for state, expected_state in zip(actual, expected, strict=True):
        assert all(torch.equal(state[name], value) for name, value in expected_state.items())
    # The averages in the checkpoint differ from the trained weights next to them.
    assert not torch.equal(actual[1]['0.weight'], actual[2]['module.0.weight'])


def test_validation_without_training_keeps_the_weights():
    hook, run = EMAHook(), Run(model())
    hook.before_run(run)
    before = deepcopy(run.model.state_dict())
    hook.before_val_epoch(run)
    assert all(torch.equal(value, before[name]) for name, value in run.model.state_dict().items())
    assert not list(hook.ema_model.parameters())


def test_averages_of_another_model_raise():
    hook, run = EMAHook(), Run(model())
    hook.before_run(run)
    run.train(hook, 1)
    saved, other = (
        run.save(hook),
        Run(nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5)), resume=True),
    )
    hook.before_run(other)
    with rejects(r"no average of '0.weight' with the shape \(5, 3\)"):
        hook.after_load_checkpoint(other, saved)


def test_averages_of_a_sharded_model_are_sharded(tiny):
    run = Run(VisionTransformer(**tiny))
    images = torch.randn(2, 3, 32, 32)
    with pretended_ranks(2, rank=1):
        shard(run.model, Sharding(), 'cpu')
        hook = EMAHook(momentum=0.5)
        hook.before_run(run)
        hook.before_train(run)
        first = {name: value.clone() for name, value in run.model.state_dict().items()}
        for parameter in run.model.parameters():
            parameter.data.add_(1.0)
        with torch.no_grad():
            run.model(images)  # leaves the parameters of the root unsharded
        hook.after_train_iter(run, 0)  # the first averages are the weights
        for parameter in run.model.parameters():
            parameter.data.add_(1.0)
        hook.after_train_iter(run, 1)
        checkpoint = {'state_dict': run.model.state_dict()}
        hook.before_save_checkpoint(run, checkpoint)
        for name, average in checkpoint['state_dict'].items():
            if isinstance(average, DTensor):
                # MMEngine saves the averages as the model, and the trained weights as the EMA.
                trained = checkpoint['ema_state_dict'][f'module.{name}']
                assert average.placements == trained.placements == first[name].placements
                torch.testing.assert_close(average.to_local(), first[name].to_local() + 1.5)
                torch.testing.assert_close(trained.to_local(), first[name].to_local() + 2)


def test_wrong_beginnings_raise():
    with rejects('EMAHook: .* should not be both set'):
        EMAHook(begin_iter=1, begin_epoch=1)
    with rejects('EMAHook: self.begin_epoch should be smaller than or equal to'):
        EMAHook(begin_epoch=4).before_train(Run(nn.Linear(2, 2)))
