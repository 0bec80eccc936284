"""Data sets of encoded images in larger files: Hugging Face's and WebDataset's."""

import io
import os
import pickle
import tarfile

import cv2
import numpy as np
import pytest
from mmengine.registry import DATASETS

from vit_plugin.data import WebShards
from vit_plugin.data.unreadable import UnreadableError
from vit_plugin.errors import ConfigError


def png(value: int) -> bytes:
    return cv2.imencode('.png', np.full((4, 6, 3), value, np.uint8))[1].tobytes()


def write_shard(path, samples: dict[str, bytes]) -> str:
    with tarfile.open(path, 'w') as archive:
        for name, content in samples.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return str(path)


@pytest.fixture
def shards(tmp_path) -> str:
    """Seven samples in two shards, each image as bright as its number."""
    for number, keys in enumerate((range(4), range(4, 7))):
        write_shard(tmp_path / f'train-{number}.tar', {
            f'folder/{key:04}.{ending}': content for key in keys
            for ending, content in (('cls', str(key % 3).encode()), ('json', b'{}'), ('png', png(key)))})
    return str(tmp_path / 'train-*.tar')


def test_shards_are_read_at_any_place(shards):
    data = DATASETS.build(dict(type='vit_plugin.WebShards', shards=shards, classes=['a', 'b', 'c']))
    assert len(data) == 7
    assert data.metainfo == dict(classes=('a', 'b', 'c'))
    for index in (6, 0, 4):
        sample = data[index]
        assert (sample['img'] == index).all()
        assert sample['img_shape'] == (4, 6)
        assert sample['gt_label'] == index % 3
        assert sample['sample_idx'] == index
    copy = pickle.loads(pickle.dumps(data))  # for workers that are spawned
    assert (copy[5]['img'] == 5).all()


def test_an_index_is_kept_while_the_shards_are_the_same(shards, tmp_path, monkeypatch):
    index = str(tmp_path / 'train.npz')
    WebShards(shards, index=index)
    monkeypatch.setattr('vit_plugin.data.web_dataset._rows_of', None)
    assert (WebShards(shards, index=index)[6]['img'] == 6).all()
    monkeypatch.undo()
    write_shard(tmp_path / 'train-1.tar', {'a.png': png(9), 'a.cls': b'1'})
    data = WebShards(shards, index=index)
    assert len(data) == 5
    assert (data[4]['img'] == 9).all()
    (tmp_path / 'train.npz').write_bytes(b'torn')
    assert len(WebShards(shards, index=index)) == 5


@pytest.mark.parametrize(('change', 'words'), [
    (lambda path: path.write_bytes(path.read_bytes()[:3000]), 'is not a complete tar file'),
    (lambda path: path.write_bytes(b'\x1f\x8b' + bytes(600)), 'is not a complete tar file without compression'),
    (lambda path: write_shard(path, {'a.png': png(1)}), "the sample '/a' has no cls, but png"),
    (lambda path: write_shard(path, {'a.tiff': b'', 'a.cls': b'1'}), 'has no jpg or jpeg or .*, but tiff, cls'),
])
def test_a_bad_shard_is_one_sentence(shards, tmp_path, change, words):
    change(tmp_path / 'train-0.tar')
    with pytest.raises(ConfigError, match=words):
        WebShards(shards)


def test_no_shard_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"shards='.*none\*' matches no file"):
        WebShards(str(tmp_path / 'none*'))
    with pytest.raises(ConfigError, match='none.tar.* cannot be read'):
        WebShards([str(tmp_path / 'none.tar')])


def test_a_bad_sample_names_its_shard(tmp_path):
    data = WebShards([write_shard(tmp_path / 'a.tar', {
        'a.png': b'no image', 'a.cls': b'1', 'b.png': png(1), 'b.cls': b'cat'})])
    with pytest.raises(UnreadableError, match='a.tar from byte 512.* cannot be read as an image'):
        data[0]
    with pytest.raises(ConfigError, match="the label b'cat' is not an integer"):
        data[1]


class TestHuggingFace:
    """Needs the extra."""

    @pytest.fixture
    def saved(self, tmp_path) -> str:
        datasets = pytest.importorskip('datasets')
        features = datasets.Features(dict(image=datasets.Image(), label=datasets.ClassLabel(names=['a', 'b', 'c']),
                                          text=datasets.Value('string')))
        rows = dict(image=[dict(bytes=png(i), path=None) for i in range(6)] + [dict(bytes=b'no image', path='bad.png')],
                    label=[i % 3 for i in range(7)], text=['x'] * 7)
        table = datasets.Dataset.from_dict(rows, features=features)
        datasets.DatasetDict(train=table).save_to_disk(str(tmp_path / 'saved'))
        table.to_parquet(str(tmp_path / 'train.parquet'))
        return str(tmp_path / 'saved')

    @pytest.mark.filterwarnings('ignore')
    def test_it_is_read_at_any_place(self, saved, tmp_path):
        os.environ['HF_DATASETS_OFFLINE'] = '1'
        kind = dict(type='vit_plugin.HuggingFaceImages')
        for data in (DATASETS.build(dict(kind, path=saved)), DATASETS.build(dict(
                kind, path='parquet', data_files=str(tmp_path / 'train.parquet')))):
            assert len(data) == 7
            assert data.metainfo == dict(classes=('a', 'b', 'c'))
            assert (data[4]['img'] == 4).all()
            assert data[4]['gt_label'] == 1
            with pytest.raises(UnreadableError, match=r'\[6\] bad.png.* cannot be read as an image'):
                data[6]

    @pytest.mark.filterwarnings('ignore')
    @pytest.mark.parametrize(('options', 'words'), [
        (dict(image='picture'), "image='picture' is no column of .*, which has image, label, text"),
        (dict(image='text'), "image='text' of .* is no column of images"),
        (dict(label='text'), "label='text' of .* has no integers"),
        (dict(split='test'), "with split='test' is no data set"),
        (dict(path='/nowhere'), "path='/nowhere' .* is no data set"),
    ])
    def test_bad_columns_are_one_sentence(self, saved, options, words):
        with pytest.raises(ConfigError, match=words):
            DATASETS.build(dict(dict(type='vit_plugin.HuggingFaceImages', path=saved), **options))
