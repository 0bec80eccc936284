"""The campaign ``sweep``: its table, its repetition of failed runs, and its errors."""

import pytest
from bad_calls import DIGITS, SHORT

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.mark.nightly
def test_a_sweep_trains_over_a_grid_and_repeats_failures(run_campaign, tmp_path):
    grid = ('optim_wrapper.optimizer.lr=1e30,1e-3', '--seeds', '1')  # the first rate diverges
    call = ('sweep', DIGITS, '--grid', *grid, '--work-dir', tmp_path, '--cfg-options', *SHORT)
    done = run_campaign(*call)
    assert done.returncode == 1
    assert 'Error: 1 of 2 runs failed; the same command tries them again:' in done.stderr
    failed, trained = (tmp_path / 'results.md').read_text().splitlines()[2:]
    assert '| no score |' in failed
    assert '| 0.001 | ' in trained
    assert run_campaign(*call).stdout.count(': begins') == 1


def test_invalid_calls_raise_one_sentence(run_campaign, tmp_path):
    (tmp_path / 'sweep.json').write_text('{"config": "other.py"}')
    for arguments, words in (
        (('--grid', 'model.backbone.depth=3,4'), 'takes no depth'),
        (('--grid', 'model.backbone.drop_rate=0,0.1'), 'belongs to another sweep'),
        (('--grid', 'drop_rate'), 'is not of the form KEY=VALUE'),
    ):
        done = run_campaign('sweep', DIGITS, *arguments, '--work-dir', tmp_path)
        assert done.returncode
        assert words in done.stderr.strip().splitlines()[-1]
