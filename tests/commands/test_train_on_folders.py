"""First steps on the command line: train on a folder, then predict, test and embed."""

import json
from pathlib import Path

import numpy as np
import pytest
from authors import recorded
from extras import needs_mmdet
from image_folders import write_digits, write_voc

from vit_plugin.commands import entry, pretrain, train

ROOT = Path(__file__).parents[2]
ARCH = 'timm://test_vit'
QUICK = [
    'train_dataloader.num_workers=0',
    'val_dataloader.num_workers=0',
    'test_dataloader.num_workers=0',
]

CONFIG = 'vit_plugin::vit/vit-mini-p2_1xb16_digits.py'


@pytest.fixture
def run_here(run_command, monkeypatch, tmp_path):
    """The fixture ``run_command``, in a working directory with only a folder without images."""
    (tmp_path / 'tools').symlink_to(ROOT / 'tools')
    monkeypatch.chdir(tmp_path)
    return run_command


def train_on_digits(run_here, flags=''):
    """Train for an epoch on the folder ``digits`` in the working directory."""
    return run_here(
        f'train --data digits --arch {ARCH} --epochs 1 --img-size 32 {flags} --cfg-options', *QUICK
    )


def test_a_model_trained_on_a_folder_predicts(run_here, tmp_path):
    write_digits(tmp_path / 'digits', per_class=5)
    done = train_on_digits(run_here)
    assert done.returncode == 0, done.stderr
    assert 'digits: 3 classes. 12 images to train on, 3 images held out' in done.stdout
    # The planned config, and not MMEngine's dump of it.
    text = Path('work_dirs/digits/config.py').read_text()
    assert text.startswith('"""timm://test_vit on digits, 3 classes.')

    done = run_here(
        'infer work_dirs/digits/epoch_1.pth "digits/digit 1/000.png" --out pictures '
        '--out found.json --out found.csv'
    )
    assert done.returncode == 0, done.stderr
    assert 'digit 1 0.' in done.stdout
    (rows,) = json.loads(Path('found.json').read_text()).values()
    assert {row['class'] for row in rows} == {'digit 0', 'digit 1', 'digit 2'}
    assert Path('found.csv').read_text().splitlines()[0] == 'image,class,score'


@pytest.mark.nightly
def test_the_written_config_tests_embeds_resumes_and_starts_trainings(run_here, tmp_path):
    write_digits(tmp_path / 'digits', per_class=5)
    assert train_on_digits(run_here).returncode == 0
    config, checkpoint = 'work_dirs/digits/config.py', 'work_dirs/digits/epoch_1.pth'

    done = run_here('test work_dirs/digits --out metrics.json --out-item metrics')
    assert done.returncode == 0, done.stderr
    assert (
        json.loads(Path('metrics.json').read_text())
        == json.loads(Path('work_dirs/digits/metrics.json').read_text())['last']
    )

    images = [str(path) for path in sorted(Path('digits').rglob('*.png'))]
    for model, file in (([], 'a.npz'), (['--arch', ARCH, '--cfg-options', 'img_size=32'], 'b.npz')):
        done = run_here('embed', checkpoint, *images, *model, '--out', file, '--normalize')
        assert done.returncode == 0, done.stderr
    first, second = recorded('a.npz'), recorded('b.npz')
    assert first['names'].tolist() == images
    assert first['features'].shape == (15, 64)
    np.testing.assert_allclose(first['features'], second['features'], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(first['features'], axis=1), 1, atol=1e-5)

    done = run_here(f'train {config} --resume --cfg-options train_cfg.max_epochs=2')
    assert done.returncode == 0, done.stderr
    assert Path('work_dirs/digits/epoch_2.pth').is_file()

    done = train_on_digits(run_here, f'--weights {checkpoint} --work-dir tuned')
    assert done.returncode == 0, done.stderr
    assert 'Load checkpoint from work_dirs/digits/epoch_1.pth' in done.stdout + done.stderr


@pytest.mark.parametrize('command', [train, pretrain])
@pytest.mark.parametrize(
    ('flags', 'resumes'), [('', False), ('--resume', True), ('--resume-changed', True)]
)
def test_both_flags_of_resuming_continue_the_run_in_the_folder(
    command, flags, resumes, monkeypatch
):
    def write_config(request, resume, check=False):
        raise InterruptedError(f'resume={resume}')

    monkeypatch.setattr('vit_plugin.from_folder.write.write_config', write_config)
    args = entry.build_parser(command).parse_args(['--data', 'digits', *flags.split()])
    with pytest.raises(InterruptedError, match=f'resume={resumes}'):
        command.main(args)


@pytest.mark.nightly
def test_changed_images_raise_when_resuming(run_here, tmp_path):
    write_digits(tmp_path / 'digits', per_class=5)
    assert train_on_digits(run_here).returncode == 0
    option = 'train_cfg.max_epochs=2'
    image, other = (tmp_path / f'digits/digit {label}/000.png' for label in (0, 1))
    image.write_bytes(other.read_bytes())
    config = 'work_dirs/digits/config.py'
    done = run_here(f'train {config} --resume --cfg-options {option}')
    assert done.returncode == 1
    assert 'the bytes of the images of train_dataloader: ' in done.stderr
    done = run_here(f'train {config} --resume --resume-changed --cfg-options {option}')
    assert done.returncode == 0, done.stderr
    assert 'The run continues with changes: the bytes of the images' in done.stdout + done.stderr


@pytest.mark.nightly
@needs_mmdet
def test_check_ends_before_the_first_step(run_here, tmp_path):
    write_voc(tmp_path / 'cells')
    done = run_here('train --data cells --task detection --check')
    assert done.returncode == 0, done.stderr
    assert 'train  4       8        2        bar (4)         square (4)' in done.stdout
    assert 'checked up to its first step, and nothing was trained. Look at ' in done.stdout
    assert {path.name for path in Path('work_dirs/cells').iterdir() if not path.is_dir()} == {
        'config.py',
        'train.json',
        'val.json',
        'data_report.md',
        'data_report.json',
        'decoded_images.jsonl',
        'labels.png',
        'train_batch.png',
    }
    for flags, words in (
        ('--cfg-options nothing.x=1', "a config has no setting 'nothing'"),
        ('--cfg-options train_cfg.max_epochs=0', 'max_epochs=0 must be'),
        ('--launcher pytorch', 'this process was not started by that launcher'),
    ):
        done = run_here(f'train --data cells --task detection --check {flags}')
        assert done.returncode == 1
        assert words in done.stderr.splitlines()[-1]


@needs_mmdet
@pytest.mark.nightly
def test_a_folder_of_boxes_is_trained_on(run_here, tmp_path):
    write_voc(tmp_path / 'cells')
    done = run_here(
        f'train --data cells --task detection --arch {ARCH} --epochs 1 --cfg-options', *QUICK
    )
    assert done.returncode == 0, done.stderr
    assert 'cells: 2 classes. 4 images to train on, 2 images to validate.' in done.stdout
    done = run_here('infer work_dirs/cells cells/JPEGImages --out pictures')
    assert done.returncode == 0, done.stderr
    assert len(list(Path('pictures').iterdir())) == 6


@pytest.mark.parametrize(
    ('line', 'words'),
    [
        ('train --data digits --weights real.pth', "real.pth' cannot be read"),
        (f'train --data tools --arch {ARCH}', "there are no images in 'tools'"),
        ('embed real.pth "digits/digit 0" --out o.npz', "'real.pth' cannot be read"),
        (
            f'embed real.pth "digits/digit 0" --out o.npz --config {CONFIG} --arch B/16',
            'give one of them',
        ),
    ],
)
def test_invalid_calls_raise_and_write_nothing(run_here, tmp_path, line, words):
    write_digits(tmp_path / 'digits', per_class=1, classes=2)
    (tmp_path / 'real.pth').touch()
    done = run_here(line)
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[-1]
    assert not (tmp_path / 'work_dirs').exists()
