"""Pages run from top to bottom, and the site builds."""

import json
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from image_folders import write_digits
from safetensors.torch import save_file

from vit_plugin.models import VisionTransformer


def test_a_page_runs_in_one_shell(tmp_path, monkeypatch):
    (tmp_path / 'page.md').write_text(
        '```bash\npip install what-is-not-there\nmkdir a && cd a\nx=3   # '
        'kept\n```\n\n```python\n# mine.py\nprint(1)\n```\n- indented\n\n  ```bash\n  python '
        'mine.py \\\n      NAME | grep 1\n  echo "$x $PWD"\n  ```\n```python\nprint(2 * '
        '21)\n```\n```text\nfalse\n```\n```bash\nvit-plugin demo CHECKPOINT\n```\n'
    )
    monkeypatch.setattr(pages, 'ROOT', tmp_path)
    values = dict(NAME='given', CHECKPOINT='what-is-not-there.pth')  # a demo would never end
    shown = pages.run_page('page.md', tmp_path, values)
    assert shown.splitlines() == [
        '+ page.md:2',
        '+ page.md:8',
        '+ page.md:14',
        '1',
        f'3 {tmp_path}/a',
        '+ page.md:19',
        '42',
        '+ page.md:25',
    ]
    (tmp_path / 'page.md').write_text('```bash\nfalse\necho not reached\n```\n')
    with pytest.raises(
        pytest.fail.Exception, match='page.md ended with status 1:\n\\+ page.md:2\n$'
    ):
        pages.run_page('page.md', tmp_path)


@pytest.fixture
def clone(tmp_path) -> Path:
    """A folder with what a reader of a page has."""
    for name in ('configs', 'tools'):
        (tmp_path / name).symlink_to(pages.ROOT / name)
    return tmp_path


@pytest.mark.nightly
def test_the_start_page(clone):
    pages.run_page('docs/start.md', clone)
    scores = json.loads((clone / 'runs/scores.json').read_text())
    assert scores['accuracy/top1'] > 95
    assert (clone / 'runs/digits/confusion_matrix.png').is_file()
    assert (clone / 'runs/faster/last_checkpoint').read_text().endswith('epoch_2.pth')


@pytest.mark.nightly
def test_the_gallery_page(clone):
    pytest.importorskip('skimage')
    for split in ('train', 'val'):
        write_digits(clone / f'data/cifar10-jpeg/{split}', per_class=3, classes=10, size=32)
    recipe = 'configs/hybrid_vit/hybrid-vit-d2-w192_1xb256-16e_cifar10-folder.py'
    subprocess.run(
        [
            sys.executable,
            'tools/train.py',
            recipe,
            '--work-dir',
            'recipe',
            '--cfg-options',
            'train_cfg.max_epochs=1',
        ],
        cwd=clone,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    arch = 'timm://vit_small_patch14_dinov2.lvd142m'
    save_file(VisionTransformer(arch).state_dict(), clone / 'dinov2.safetensors')
    shown = pages.run_page('docs/gallery.md', clone, dict(CHECKPOINT='recipe/epoch_1.pth'))
    written = {path.name for path in (clone / 'gallery').iterdir()}
    assert {
        f'{name}.png'
        for name in (
            'distance',
            'posembed',
            'features',
            'chelsea_attention',
            'chelsea_rollout',
            'chelsea_cam',
        )
    } == written
    assert set(shown.split()) >= {f'gallery/{name}' for name in written}


@pytest.mark.nightly
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip('sphinx')
    build = [
        sys.executable,
        '-m',
        'sphinx',
        '-W',
        '--keep-going',
        '-q',
        '-b',
        'html',
        'docs',
        str(tmp_path),
    ]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob('*.html'))) >= len(list(Path('docs').glob('*.md')))
