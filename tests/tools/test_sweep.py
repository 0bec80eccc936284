import json

import pytest
from bad_calls import DIGITS, SHORT

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.mark.nightly
def test_trainings_over_a_grid(run_tool, tmp_path):
    call = (
        'sweep',
        DIGITS,
        '--grid',
        'model.backbone.drop_rate=0,0.1',
        '--seeds',
        '2',
        '--work-dir',
        tmp_path,
        '--cfg-options',
        *SHORT,
    )
    done = run_tool(*call)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / 'results.json').read_text())
    assert [len(row['scores']) for row in found['rows']] == [2, 2]
    assert found['metric'] == 'accuracy/top1'
    assert run_tool(*call).stdout.count('finished before') == 4


@pytest.mark.nightly
def test_a_run_that_fails_is_said_at_the_end_and_in_the_exit_status(run_tool, tmp_path):
    done = run_tool(
        'sweep',
        DIGITS,
        '--grid',
        'optim_wrapper.optimizer.lr=1e30,1e-3',
        '--seeds',
        '1',
        '--work-dir',
        tmp_path,
        '--cfg-options',
        *SHORT,
    )
    assert done.returncode == 1
    assert 'Error: 1 of 2 runs have no result' in done.stderr
    found = json.loads((tmp_path / 'results.json').read_text())
    assert [len(row['scores']) for row in found['rows']] == [0, 1]
    assert len(found['failed']) == 1


def test_bad_input_is_one_sentence(run_tool, tmp_path):
    (tmp_path / 'sweep.json').write_text('{"config": "other.py"}')
    for arguments, words in (
        (('--grid', 'model.backbone.depth=3,4'), 'takes no depth'),
        (('--grid', 'model.backbone.drop_rate=0,0.1'), 'is the folder of another sweep'),
        (('--grid', 'drop_rate'), 'is not of the form KEY=VALUE'),
    ):
        done = run_tool('sweep', DIGITS, *arguments, '--work-dir', tmp_path)
        assert done.returncode
        assert words in done.stderr.strip().splitlines()[-1]
