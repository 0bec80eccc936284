import io
import sys

import pytest
from campaigns.tiny_run import build, tiny_cfg

pytestmark = pytest.mark.filterwarnings('ignore')


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize('stream', [Terminal, io.StringIO])
def test_a_bar_in_a_terminal_and_nothing_in_a_file(tmp_path, monkeypatch, stream):
    monkeypatch.setattr(sys, 'stderr', stream())
    runner = build(tiny_cfg(tmp_path, custom_hooks=[dict(type='vit_plugin.ProgressHook')]))
    handlers = list(runner.logger.handlers)
    runner.train()
    shown = sys.stderr.getvalue()
    assert ('/12 ' in shown) == (stream is Terminal)
    assert ('accuracy/top1' in shown) == (stream is Terminal)
    assert runner.logger.handlers == handlers
