"""Data sets of Hugging Face's library ``datasets``."""

import io
import tarfile

import cv2
import numpy as np
import pytest
from mmengine.registry import DATASETS
from rejection import rejects

from vit_plugin.data.unreadable import UnreadableError


def png(value: int) -> bytes:
    return cv2.imencode('.png', np.full((4, 6, 3), value, np.uint8))[1].tobytes()


@pytest.fixture
def saved(tmp_path) -> str:
    """Six images of different values and an unreadable one, saved in two formats."""
    datasets = pytest.importorskip('datasets')
    features = datasets.Features(
        dict(
            image=datasets.Image(),
            label=datasets.ClassLabel(names=['a', 'b', 'c']),
            text=datasets.Value('string'),
        )
    )
    rows = dict(
        image=[dict(bytes=png(i), path=None) for i in range(6)]
        + [dict(bytes=b'no image', path='bad.png')],
        label=[i % 3 for i in range(7)],
        text=['x'] * 7,
    )
    table = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict(train=table).save_to_disk(str(tmp_path / 'saved'))
    table.to_parquet(str(tmp_path / 'train.parquet'))
    return str(tmp_path / 'saved')


@pytest.mark.filterwarnings('ignore')
def test_saved_and_parquet_data_are_read(saved, tmp_path, monkeypatch):
    monkeypatch.setenv('HF_DATASETS_OFFLINE', '1')
    base = dict(type='vit_plugin.HuggingFaceImages')
    for data in (
        DATASETS.build(dict(base, path=saved)),
        DATASETS.build(dict(base, path='parquet', data_files=str(tmp_path / 'train.parquet'))),
    ):
        assert len(data) == 7
        assert data.metainfo == dict(classes=('a', 'b', 'c'))
        assert (data[4]['img'] == 4).all()
        assert data[4]['gt_label'] == 1
        with pytest.raises(UnreadableError, match=r'\[6\] bad.png.* cannot be read as an image'):
            data[6]


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (
            dict(image='picture'),
            "image='picture' is not a column of .*, which has image, label, text",
        ),
        (dict(image='text'), "image='text' of .* is not a column of images"),
        (dict(label='text'), "label='text' of .* is not a column of integers"),
        (dict(split='test'), "with split='test' is not a data set"),
        (dict(path='/nowhere'), "path='/nowhere' .* is not a data set"),
    ],
)
def test_invalid_columns_and_paths_raise(saved, options, words):
    with rejects(words):
        DATASETS.build(dict(dict(type='vit_plugin.HuggingFaceImages', path=saved), **options))


@pytest.mark.filterwarnings('ignore')
def test_shards_of_webdataset_are_read(tmp_path, monkeypatch):
    pytest.importorskip('datasets')
    monkeypatch.setenv('HF_DATASETS_OFFLINE', '1')
    for shard, numbers in enumerate((range(4), range(4, 7))):
        with tarfile.open(tmp_path / f'train-{shard}.tar', 'w') as archive:
            for number in numbers:
                for ending, content in (('cls', str(number % 3).encode()), ('png', png(number))):
                    member = tarfile.TarInfo(f'folder/{number:04}.{ending}')
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    data = DATASETS.build(
        dict(
            type='vit_plugin.HuggingFaceImages',
            path='webdataset',
            image='png',
            label='cls',
            data_files=str(tmp_path / 'train-*.tar'),
        )
    )
    assert [(sample['img'].max(), sample['gt_label']) for sample in data] == [
        (i, i % 3) for i in range(7)
    ]


@pytest.mark.filterwarnings('ignore')
def test_unsigned_labels_are_integers(tmp_path):
    datasets = pytest.importorskip('datasets')
    features = datasets.Features(dict(image=datasets.Image(), label=datasets.Value('uint8')))
    rows = dict(image=[dict(bytes=png(5), path=None)], label=[200])
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / 'saved'))
    data = DATASETS.build(dict(type='vit_plugin.HuggingFaceImages', path=str(tmp_path / 'saved')))
    assert data[0]['gt_label'] == 200
