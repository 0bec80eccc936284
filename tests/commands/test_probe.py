import json

CONFIG = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
FEW = (
    '--cfg-options',
    'train_dataloader.dataset.indices=200',
    'val_dataloader.dataset.indices=100',
)


def test_digits_are_told_apart_without_training(run_command, tmp_path):
    done = run_command(
        f'probe --config {CONFIG} --out {tmp_path}/found.json --shots 3 --seeds 2 '
        f'--work-dir {tmp_path}',
        *FEW,
    )
    assert not done.returncode, done.stderr
    found = json.loads((tmp_path / 'found.json').read_text())
    assert found.keys() == {'knn', 'linear', 'fewshot'}
    assert found['linear'] > 50  # of random weights; 10 classes
    assert len(found['fewshot']['3']) == 2
    assert f'linear: {found["linear"]:.2f} %' in done.stdout
