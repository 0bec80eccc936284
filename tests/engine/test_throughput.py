"""Images per second, and a word when a CPU will take hours."""

import pytest
from campaigns.tiny_run import build, tiny_cfg

from vit_plugin.engine import throughput

pytestmark = pytest.mark.filterwarnings('ignore')


def test_images_per_second_are_logged(tmp_path, monkeypatch):
    monkeypatch.setattr(throughput, 'STEADY', 3)
    monkeypatch.setattr(throughput, 'LONG', 0.)
    runner = build(tiny_cfg(tmp_path))
    said = []
    monkeypatch.setattr(runner.logger, 'warning', said.append)
    runner.train()
    rate, seconds = (runner.message_hub.get_scalar(f'train/{name}') for name in ('images/s', 'time'))
    assert rate.current() == pytest.approx(runner.train_dataloader.batch_sampler.batch_size / seconds.current())
    assert len(rate.data[0]) == runner.max_iters
    assert [text for text in said if 'hours remain on this CPU' in text] == said[:1]
