from pathlib import Path

import pytest
from campaigns.records import CASES, begun, outcome


@pytest.fixture(scope='module')
def run(tmp_path_factory) -> Path:
    return begun(tmp_path_factory.mktemp('records') / 'run')


@pytest.mark.nightly  # test_reading.py has quick ones
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('case', CASES)
def test_a_run_goes_on_beside_a_broken_record(run, case, tmp_path):
    assert outcome(case, run, tmp_path) == 'right'
