"""The examples in anyfolder's README, with the frameworks that they are for."""

import re
from pathlib import Path

import pytest
import torch
from image_folders import write_coco, write_digits

import anyfolder

TEXT = Path('anyfolder/README.md').read_text()


def example(words: str) -> str:
    """The example that has these words."""
    [found] = [
        code for code in re.findall(r'```python\n(.*?)```', TEXT, re.DOTALL) if words in code
    ]
    return found


def test_the_first_example_prints_boxes_and_notes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'my/folder')
    exec(example('my/folder'))
    said = capsys.readouterr().out.splitlines()
    assert len([line for line in said if ' square (' in line]) == 9
    assert '(64, 48) bar (30.0, 40.0, 30.0, 4.0)' in ' '.join(said)


def test_a_data_set_of_pytorch(tmp_path):
    names = dict(torch=torch, anyfolder=anyfolder)
    exec(example('class Classified'), names)
    data = names['Classified'](write_digits(tmp_path), 'train')
    batch = next(iter(torch.utils.data.DataLoader(data, batch_size=9)))
    assert batch[0].shape == (9, 3, 8, 8)
    assert sorted(batch[1].tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.filterwarnings('ignore')
def test_mmdetection_takes_a_folder(tmp_path):
    pytest.importorskip('mmdet')
    from mmdet.datasets import BaseDetDataset
    from mmdet.registry import DATASETS

    write_coco(tmp_path)
    names = dict(BaseDetDataset=BaseDetDataset, DATASETS=DATASETS, anyfolder=anyfolder)
    try:
        exec(example('class AnyFolder'), names)
        steps = [dict(type='mmdet.LoadAnnotations', with_bbox=True)]
        data = DATASETS.build(dict(type='AnyFolder', data_root=str(tmp_path), pipeline=steps))
    finally:
        DATASETS.module_dict.pop('AnyFolder', None)
    assert (len(data), data.metainfo['classes']) == (9, ('square', 'bar'))
    boxes, labels = data[0]['gt_bboxes'].tensor.tolist(), data[0]['gt_bboxes_labels'].tolist()
    assert boxes[labels.index(1)] == [30, 40, 60, 44]
    assert sorted(labels) == [0, 1]
