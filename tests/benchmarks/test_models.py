"""Models side by side, with a training that takes no time."""

import json
import sys

from benchmarks import models


def test_each_model_has_the_same_minutes(tmp_path, monkeypatch, capsys):
    epochs_of = []

    def train(args, model, epochs, folder, *more):
        folder.mkdir(parents=True)
        if '--no-validate' not in more:
            epochs_of.append(epochs)
            found = {'last': {'coco/bbox_mAP': 0.1 * len(epochs_of)}}
            (folder / 'metrics.json').write_text(json.dumps(found))
        return 10.0 + epochs * (2 if model == 'quick' else 4)

    monkeypatch.setattr(models, 'train', train)
    options = '--data x --models quick,slow --minutes 1 --seeds 2'
    monkeypatch.setattr(sys, 'argv', ['models', *options.split(), '--out', str(tmp_path)])
    models.main()
    assert epochs_of == [30, 30, 15, 15]
    said = capsys.readouterr().out
    assert 'quick, seed 1: 30 epochs, 1.2 minutes, coco/bbox_mAP 0.2' in said
    assert 'slow: 0.35 ± 0.071' in said
