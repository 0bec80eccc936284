"""Pages that are run from top to bottom, and the site."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pages
import pytest
from PIL import Image


def test_a_page_runs_in_one_shell(tmp_path, monkeypatch):
    (tmp_path / 'page.md').write_text(
        '```bash\npip install what-is-not-there\nmkdir a && cd a\nx=3   # kept\n```\n\n'
        '```python\n# mine.py\nprint(1)\n```\n'
        '- indented\n\n  ```bash\n  python mine.py \\\n      NAME | grep 1\n  echo "$x $PWD"\n  ```\n'
        '```python\nprint(2 * 21)\n```\n```text\nfalse\n```\n')
    monkeypatch.setattr(pages, 'ROOT', tmp_path)
    shown = pages.run_page('page.md', tmp_path, dict(NAME='given'))
    assert shown.splitlines() == ['+ page.md:2', '+ page.md:8', '+ page.md:14', '1', f'3 {tmp_path}/a', '+ page.md:19',
                                  '42']
    (tmp_path / 'page.md').write_text('```bash\nfalse\necho not reached\n```\n')
    with pytest.raises(pytest.fail.Exception, match='page.md ended with status 1:\n\\+ page.md:2\n$'):
        pages.run_page('page.md', tmp_path)


@pytest.fixture
def clone(tmp_path) -> Path:
    """A folder with what a reader of a page has."""
    for name in ('configs', 'tools'):
        (tmp_path / name).symlink_to(pages.ROOT / name)
    return tmp_path


@pytest.mark.nightly
def test_five_minutes(clone):
    pages.run_page('docs/start.md', clone)
    scores = json.loads((clone / 'runs/scores.json').read_text())
    assert scores['accuracy/top1'] > 95
    assert (clone / 'runs/digits/confusion_matrix.png').is_file()
    assert (clone / 'runs/faster/last_checkpoint').read_text().endswith('epoch_2.pth')


@pytest.mark.nightly
def test_the_gallery(clone):
    photo = write_blood_cells(clone / 'data/bccd-voc')
    for block in pages.blocks('docs/gallery.md', 'python'):
        if named := re.match(r'# ([\w.]+\.py)\n', block.text):
            (clone / named[1]).write_text(block.text)
    short = 'train_cfg.max_epochs=1 train_dataloader.dataset.indices=64'
    for command in ('windows.py data/bccd-voc data/bccd-windows',
                    f'tools/train.py windows_config.py --work-dir run --cfg-options {short}'):
        subprocess.run([sys.executable, *command.split()], cwd=clone, check=True, stdout=subprocess.DEVNULL)
    shown = pages.run_page('docs/gallery.md', clone, dict(
        CONFIG='windows_config.py', CHECKPOINT='run/epoch_1.pth', PHOTO=photo))
    written = {path.name for path in (clone / 'gallery').iterdir()}
    assert {'distance.png', 'posembed.png', 'filters.png', 'features.png'} < written
    assert {f'{Path(photo).stem}_{kind}.png' for kind in ('attention', 'rollout', 'cam')} < written
    assert set(shown.split()) >= {f'gallery/{name}' for name in written}


def write_blood_cells(folder: Path) -> str:
    """Two photographs as large as BCCD's with a cell of each kind. Returns the name of the first."""
    for name in ('ImageSets/Main', 'Annotations', 'JPEGImages'):
        (folder / name).mkdir(parents=True)
    for stem in ('BloodImage_00017', 'BloodImage_00030'):
        pixels = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f'JPEGImages/{stem}.jpg')
        boxes = [('RBC', 20, 20), ('WBC', 300, 60), ('Platelets', 100, 380), ('RBC', 520, 360)]
        (folder / f'Annotations/{stem}.xml').write_text('<annotation>' + ''.join(
            f'<object><name>{kind}</name><bndbox><xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + 60}</xmax>'
            f'<ymax>{y + 60}</ymax></bndbox></object>' for kind, x, y in boxes) + '</annotation>')
    for split in ('train', 'val'):
        (folder / f'ImageSets/Main/{split}.txt').write_text('BloodImage_00017\nBloodImage_00030\n')
    return 'data/bccd-voc/JPEGImages/BloodImage_00017.jpg'


@pytest.mark.nightly
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip('sphinx')
    build = [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q', '-b', 'html', 'docs', str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob('*.html'))) >= len(list(Path('docs').glob('*.md')))
