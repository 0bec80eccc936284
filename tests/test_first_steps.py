"""docs/first_steps.md from top to bottom, as a reader would."""

from importlib.util import find_spec

import pages
import pytest

PAGE = 'docs/first_steps.md'


@pytest.mark.nightly
@pytest.mark.skipif(not find_spec('mmdet'), reason='mmdet is not installed')
def test_the_page_runs(tmp_path):
    shown = pages.run_page(PAGE, tmp_path)
    assert 'digits: 10 classes. 180 images to train on, 20 images held out' in shown
    assert 'embeddings.npz: 200 vectors of 192 numbers.' in shown
    assert len(list((tmp_path / 'boxes').glob('*.png'))) == 10
    assert '1.000 digits/digit 0/' in shown
