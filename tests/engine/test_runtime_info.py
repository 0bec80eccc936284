import pytest
import torch
from mmengine.logging import MessageHub
from mmengine.runner import Runner

from vit_plugin.engine import OptimWrapper


def history(cfg, name: str, monkeypatch, **changes) -> tuple[dict[str, list[float]], list[int]]:
    """The recorded scalars of a run, and the iterations in which the host read from a tensor."""
    cfg = cfg.copy()
    cfg.merge_from_dict({'experiment_name': name, 'val_cfg': None, 'val_dataloader': None, 'val_evaluator': None,
                         'default_hooks.logger.interval': 3, 'default_hooks.checkpoint.save_best': None, **changes})
    runner = Runner.from_cfg(cfg)
    reads = []
    for reading in ('item', '__float__', 'tolist', '__bool__'):
        original = getattr(torch.Tensor, reading)

        def counted(tensor, original=original):
            if tensor.dtype.is_floating_point:
                reads.append(runner.iter)
            return original(tensor)

        monkeypatch.setattr(torch.Tensor, reading, counted)
    runner.train()
    monkeypatch.undo()
    scalars = runner.message_hub.log_scalars
    return {key: scalars[key].data[0].tolist() for key in ('train/loss', 'train/grad_norm')}, reads


@pytest.mark.filterwarnings('ignore')
def test_the_host_reads_only_to_log_and_records_the_same(digits_config, monkeypatch):
    steps = 3 * 4  # epochs of 64 images in batches of 16
    ours, reads = history(digits_config, 'ours', monkeypatch)
    theirs, their_reads = history(digits_config, 'theirs', monkeypatch, **{
        'default_hooks.runtime_info.type': 'mmengine.RuntimeInfoHook', 'optim_wrapper.type': 'mmengine.OptimWrapper'})
    assert ours == theirs
    assert [len(values) for values in ours.values()] == [steps, steps]
    assert set(reads) == {2, 3, 6, 7, 10, 11}  # every third iteration of an epoch, and its last
    assert set(their_reads) == set(range(steps))


def test_a_norm_is_recorded_once_when_gradients_are_accumulated():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapper = OptimWrapper(optimizer, accumulative_counts=2, clip_grad=dict(max_norm=1))
    wrapper.initialize_count_status(model, 0, 4)
    wrapper.defers_grad_norm = True  # as the hook sets it
    norms = []
    for _ in range(4):
        wrapper.update_params(model(torch.ones(2)).sum())
        norms.append(wrapper.grad_norm is not None)
        wrapper.grad_norm = None
    assert norms == [False, True, False, True]


def test_without_the_hook_a_norm_is_recorded_as_mmengine_does():
    model = torch.nn.Linear(2, 2)
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1), clip_grad=dict(max_norm=1))
    wrapper.message_hub = MessageHub.get_instance('without_the_hook')
    wrapper.update_params(model(torch.ones(2)).sum())
    assert 'train/grad_norm' in wrapper.message_hub.log_scalars
