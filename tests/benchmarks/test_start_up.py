"""The stages of a training that the campaign ``start_up`` times."""

import shutil
import sys

import pytest

from benchmarks.start_up import seconds_to_stages


def test_a_training_that_shows_no_stage_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'executable', shutil.which('echo'))
    with pytest.raises(SystemExit, match='ended before its memory: -m vit_plugin train --data x'):
        seconds_to_stages('x', str(tmp_path))
