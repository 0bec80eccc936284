"""Runs that find a broken ``metrics.json`` when they go on: what becomes of each.

    python tests/campaigns/records.py

Takes a quarter of a minute. Each run goes on, keeps the broken file aside with a word in its log, and begins anew.
"""

import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from mmengine.config import Config
from mmengine.runner import Runner

CASES = {
    'truncated': lambda whole: whole[:len(whole) // 2],
    'empty': lambda whole: b'',
    'foreign': lambda whole: b'[{"accuracy": 1}]\n',
    'not text': lambda whole: bytes(range(128, 256)),
}


def tiny(work_dir: Path, epochs: int) -> Config:
    cfg = Config.fromfile(Path(__file__).parents[2] / 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py')
    cfg.merge_from_dict({
        'train_cfg.max_epochs': epochs, 'train_dataloader.dataset.indices': 32, 'val_dataloader.dataset.indices': 20,
        'test_dataloader.dataset.indices': 20, 'work_dir': str(work_dir), 'resume': epochs > 1,
        'experiment_name': f'{work_dir.name}_{epochs}'})
    cfg.param_scheduler = None  # for runs of any length
    return cfg


def begun(work_dir: Path) -> Path:
    """A run of one epoch."""
    Runner.from_cfg(tiny(work_dir, 1)).train()
    return work_dir


def outcome(case: str, run: Path, folder: Path) -> str:
    """Which column of the table the case belongs to."""
    work_dir = shutil.copytree(run, folder / case.replace(' ', '_'))
    Path(work_dir, 'last_checkpoint').write_text(str(work_dir / 'epoch_1.pth'))
    record = work_dir / 'metrics.json'
    broken = CASES[case](record.read_bytes())
    record.write_bytes(broken)
    try:
        Runner.from_cfg(tiny(work_dir, 2)).train()
    except Exception as error:
        return f'traceback: {error!r}'
    log = max(work_dir.rglob('*.log'), key=lambda path: path.stat().st_mtime_ns).read_text()
    if (work_dir / 'metrics.unreadable_1.json').read_bytes() != broken:
        return 'lost'
    if 'metrics.json is no record of a run' not in log:
        return 'no word'
    steps = [step for step, _ in json.loads(record.read_text())['history']['accuracy/top1']]
    return 'right' if steps == [2] else f'wrong steps {steps}'


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        run = begun(Path(folder, 'run'))
        counts = Counter(outcome(case, run, Path(folder)) for case in CASES)
    print(f'records: tried {len(CASES)}, ' + ', '.join(f'{column} {count}' for column, count in counts.items()))
    return int(counts['right'] < len(CASES))


if __name__ == '__main__':
    sys.exit(main())
