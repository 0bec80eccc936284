"""Pre-training by the command line, and training that starts from it."""

from pathlib import Path

import pytest
from image_folders import write_digits

ROOT = Path(__file__).parents[2]
QUICK = ['--epochs', 1, '--cfg-options', 'train_dataloader.num_workers=0']
ONE_PROCESS = 'train_dataloader.persistent_workers=False'


@pytest.fixture
def tool(run_command, monkeypatch, tmp_path):
    """Runs a tool in a directory with a folder of digits."""
    (tmp_path / 'tools').symlink_to(ROOT / 'tools')
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / 'digits', per_class=12)
    return run_command


def test_unknown_methods_raise(tool):
    done = tool('pretrain --data digits --method mocov4')
    assert done.stderr.startswith(
        "Error: --method 'mocov4' is not one of mocov3, dino, dinov2, mae"
    )


@pytest.mark.nightly
def test_a_pretrained_model_is_trained_and_used_as_a_teacher(tool):
    images = ['--data', 'digits', '--work-dir']
    done = tool('pretrain', *images, 'first', '--method', 'simmim', *QUICK, ONE_PROCESS)
    assert done.returncode == 0, done.stderr
    assert 'Nearest neighbors by its features: ' in done.stdout
    assert 'Next: vit-plugin train --data FOLDER --weights ' in done.stdout
    done = tool('train', *images, 'second', '--weights', 'first', *QUICK)
    assert done.returncode == 0, done.stderr
    done = tool('train', *images, 'third', '--teacher', 'second', *QUICK)
    assert done.returncode == 0, done.stderr
    assert 'loss_logit' in done.stdout
    done = tool('pretrain', *images, 'fourth', '--teacher', 'first', *QUICK, ONE_PROCESS)
    assert done.returncode == 0, done.stderr
    assert 'loss_similarity' in done.stdout
    done = tool(
        'pretrain', *images, 'fourth', '--teacher', 'first', '--resume', *QUICK, ONE_PROCESS
    )
    assert done.returncode == 0, done.stderr
