"""Images per second, model FLOPs utilization, and the warning that a CPU will take hours."""

from types import SimpleNamespace

import pytest
import torch
from mmengine.logging import MessageHub
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import throughput

pytestmark = pytest.mark.filterwarnings('ignore')


def test_images_per_second_are_logged(tmp_path, monkeypatch):
    monkeypatch.setattr(throughput, 'ESTIMATE_AFTER', 3)
    monkeypatch.setattr(throughput, 'LONG_RUN_SECONDS', 0.0)
    runner = build(tiny_cfg(tmp_path))
    warnings = []
    monkeypatch.setattr(runner.logger, 'warning', warnings.append)
    runner.train()
    rate, seconds = (
        runner.message_hub.get_scalar(f'train/{name}') for name in ('images/s', 'time')
    )
    assert rate.current() == pytest.approx(
        runner.train_dataloader.batch_sampler.batch_size / seconds.current()
    )
    assert len(rate.data[0]) == runner.max_iters
    assert [text for text in warnings if 'hours remain on this CPU' in text] == warnings[:1]
    waits = runner.message_hub.get_scalar('train/data_wait').data[0]
    assert ((waits >= 0) & (waits <= 1)).all()
    assert 'train/mfu' not in runner.message_hub.log_scalars


def test_images_of_batches_with_several_sizes_are_not_counted():
    """``MultiDataAspectRatioBatchSampler`` of MMDetection has a size for each data set."""
    hook, hub = throughput.ThroughputHook(), MessageHub('several sizes')
    hub.update_scalar('train/time', 2.0)
    hub.update_scalar('train/data_time', 1.0)
    loader = SimpleNamespace(batch_sampler=SimpleNamespace(batch_size=[2, 4]))
    runner = SimpleNamespace(train_dataloader=loader, optim_wrapper=None, message_hub=hub, iter=0)
    hook.before_train(runner)
    hook.after_train_iter(runner, 0)
    assert hub.get_scalar('train/data_wait').current() == 0.5
    assert 'train/images/s' not in hub.log_scalars


@pytest.mark.nightly
@pytest.mark.parametrize('compiled', [None, dict(blocks=True, backend='eager')])
def test_utilization_follows_from_the_counted_operations(tmp_path, monkeypatch, compiled):
    monkeypatch.setattr(throughput, 'peak_flops', lambda: 1e9)
    runner = build(
        tiny_cfg(tmp_path, compile=compiled, **{'optim_wrapper.type': 'vit_plugin.AmpOptimWrapper'})
    )
    batches, train_step = [], runner.model.train_step

    def record(data, optim_wrapper):
        batches.append(data)
        return train_step(data, optim_wrapper)

    runner.model.train_step = record
    runner.train()
    with FlopCounterMode(display=False) as counter:
        runner.model.train_step(batches[0], runner.optim_wrapper)
    utilization, seconds = (
        runner.message_hub.get_scalar(f'train/{name}').data[0] for name in ('mfu', 'time')
    )
    assert utilization * seconds * 1e9 == pytest.approx(counter.get_total_flops(), rel=1e-3)
    assert runner.model.train_step is record  # restored after the operations were counted


@pytest.mark.parametrize(
    ('name', 'tflops'),
    [
        ('NVIDIA H100 80GB HBM3', 989),
        ('NVIDIA H100 PCIe', 756),
        ('NVIDIA A100-SXM4-80GB', 312),
        ('NVIDIA L40S', 362),
        ('NVIDIA L4', 121),
        ('NVIDIA GH200 480GB', 989),
        ('NVIDIA H100 NVL', 835),
        ('NVIDIA H200 NVL', 835),
        ('NVIDIA H200', 989),
        ('NVIDIA GeForce RTX 4090', 165),
        ('NVIDIA GeForce RTX 4090 D', 0),
        ('NVIDIA GeForce RTX 4090 Laptop GPU', 0),
        ('NVIDIA GeForce RTX 3090 Ti', 0),
        ('NVIDIA A100-SXM4-40GB MIG 3g.20gb', 0),
        ('Tesla T4', 65),
        ('NVIDIA A10G', 0),
        ('NVIDIA L40', 0),
        ('NVIDIA RTX A4000', 0),
        ('Some card', 0),
    ],
)
def test_peak_flops_follow_from_the_name_of_the_gpu(monkeypatch, name, tflops):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda: name)
    assert throughput.peak_flops() == tflops * 1e12
