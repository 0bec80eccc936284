"""``probe`` as a command: an accuracy for each probe, and for each draw of the few-shot probe."""

import json

import pytest

CONFIG = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
FEW_IMAGES = (
    '--cfg-options',
    'train_dataloader.dataset.indices=200',
    'val_dataloader.dataset.indices=100',
)


@pytest.mark.nightly
def test_probe_prints_and_writes_accuracies(run_command, tmp_path):
    done = run_command(
        f'probe --config {CONFIG} --out {tmp_path}/scores.json --shots 3 --seeds 2 '
        f'--work-dir {tmp_path}',
        *FEW_IMAGES,
    )
    assert not done.returncode, done.stderr
    scores = json.loads((tmp_path / 'scores.json').read_text())
    assert scores.keys() == {'knn', 'linear', 'fewshot'}
    assert scores['linear'] > 50  # percent, where chance is 10
    assert len(scores['fewshot']['3']) == 2  # one for each seed
    assert f'linear: {scores["linear"]:.2f} %' in done.stdout
