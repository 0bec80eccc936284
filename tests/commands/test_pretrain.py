"""Pre-training by the command line, and training that starts from it."""

import pytest
from image_folders import write_digits

QUICK = ['--epochs', 1, '--cfg-options', 'train_dataloader.num_workers=0']
ONE_PROCESS = 'train_dataloader.persistent_workers=False'


@pytest.fixture
def run_with_digits(run_command, monkeypatch, tmp_path):
    """The fixture ``run_command``, in a working directory that has a folder of digits."""
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / 'digits', per_class=12)
    return run_command


def test_unknown_methods_raise(run_with_digits):
    done = run_with_digits('pretrain --data digits --method mocov4')
    assert done.stderr.startswith(
        "Error: --method 'mocov4' is not one of mocov3, dino, dinov2, mae"
    )


@pytest.mark.nightly
def test_a_pretrained_model_is_trained_and_used_as_a_teacher(run_with_digits):
    images = ['--data', 'digits', '--work-dir']
    done = run_with_digits('pretrain', *images, 'first', '--method', 'simmim', *QUICK, ONE_PROCESS)
    assert done.returncode == 0, done.stderr
    assert 'Nearest neighbors by its features: ' in done.stdout
    assert 'Next: vit-plugin train --data FOLDER --weights ' in done.stdout
    done = run_with_digits('train', *images, 'second', '--weights', 'first', *QUICK)
    assert done.returncode == 0, done.stderr
    done = run_with_digits('train', *images, 'third', '--teacher', 'second', *QUICK)
    assert done.returncode == 0, done.stderr
    assert 'loss_logit' in done.stdout
    done = run_with_digits('pretrain', *images, 'fourth', '--teacher', 'first', *QUICK, ONE_PROCESS)
    assert done.returncode == 0, done.stderr
    assert 'loss_similarity' in done.stdout
    done = run_with_digits(
        'pretrain', *images, 'fourth', '--teacher', 'first', '--resume', *QUICK, ONE_PROCESS
    )
    assert done.returncode == 0, done.stderr
