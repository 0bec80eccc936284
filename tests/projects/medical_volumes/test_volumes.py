"""Slices and volumes in the layout of TransUNet's authors are read as samples."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from PIL import Image

from vit_plugin.inference.image_transforms import PipelineTransform

pytest.importorskip('mmseg')
from mmseg.datasets.transforms import LoadAnnotations

from vit_plugin.data import LoadImageSlice, LoadSliceAnnotations, VolumeSlices

META = dict(classes=('background', 'aorta', 'liver'))


def volume(seed: int, slices: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A random image (slices, H, W) from 0 to 1, and its label of three classes, in float64."""
    rng = np.random.default_rng(seed)
    return rng.random((slices, 8, 6), np.float32), rng.integers(3, size=(slices, 8, 6)) * 1.0


@pytest.fixture
def synapse(tmp_path) -> Path:
    """A folder with three slices of each of two cases, and a list of two slices."""
    (tmp_path / 'train_npz').mkdir()
    for case in (5, 7):
        for i, (image, label) in enumerate(zip(*volume(case), strict=True)):
            name = f'train_npz/case{case:04}_slice{i:03}.npz'
            np.savez(tmp_path / name, image=image, label=label)
    (tmp_path / 'train.txt').write_text('case0007_slice002\ncase0005_slice000\n')
    return tmp_path


def slices(root: Path, folder: str = 'train_npz', **kwargs) -> VolumeSlices:
    """The data set of a folder, with its loading transforms."""
    return VolumeSlices(
        data_root=str(root),
        data_prefix=dict(img_path=folder),
        metainfo=META,
        pipeline=[
            dict(type='vit_plugin.LoadImageSlice'),
            dict(type='vit_plugin.LoadSliceAnnotations'),
        ],
        **kwargs,
    )


def test_slices_follow_the_order_of_the_list(synapse):
    dataset = slices(synapse, ann_file='train.txt')
    assert len(dataset) == 2
    for sample, (case, i) in zip(dataset, ((7, 2), (5, 0)), strict=True):
        image, label = volume(case)
        assert sample['case'] == f'case{case:04}'
        assert sample['img'].dtype == np.float32
        np.testing.assert_allclose(sample['img'], 255 * image[i], rtol=1e-6)
        assert (sample['gt_seg_map'] == label[i]).all()
        assert sample['img_shape'] == sample['ori_shape'] == (8, 6)
        assert sample['seg_fields'] == ['gt_seg_map']


def test_all_slices_are_read_without_a_list(synapse):
    assert [Path(sample['img_path']).name for sample in slices(synapse)] == [
        f'case{case:04}_slice{i:03}.npz' for case in (5, 7) for i in range(3)
    ]


def test_volume_is_read_as_slices(tmp_path):
    h5py = pytest.importorskip('h5py')
    image, label = volume(1)
    with h5py.File(tmp_path / 'case0001.npy.h5', 'w') as file:
        file['image'], file['label'] = image, label
    (tmp_path / 'test_vol.txt').write_text('case0001\n')
    dataset = slices(tmp_path, '', ann_file='test_vol.txt')
    assert [(sample['case'], sample['slice']) for sample in dataset] == [
        ('case0001', i) for i in range(3)
    ]
    np.testing.assert_allclose(dataset[2]['img'], 255 * image[2], rtol=1e-6)
    assert (dataset[2]['gt_seg_map'] == label[2]).all()


def test_window_maps_hounsfield_units_to_pixel_values(tmp_path):
    image = np.array([[-1000, -125, 75], [275, 1000, 0]])
    np.savez(tmp_path / 'x.npz', image=image, label=np.zeros((2, 3)))
    sample = LoadImageSlice(window=(-125, 275))(dict(img_path=str(tmp_path / 'x.npz')))
    expected = [[0, 0, 127.5], [255, 255, 255 * 125 / 400]]
    np.testing.assert_allclose(sample['img'], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ('arrays', 'words'),
    [
        (dict(image=np.zeros((2, 3))), 'x.npz.*cannot be read.*label'),
        (dict(label=np.zeros((2, 3))), 'x.npz.*cannot be read.*image'),
        (
            dict(image=np.zeros((2, 3)), label=np.zeros((3, 2))),
            r'shape \(3, 2\) and its image \(2, 3',
        ),
        (dict(image=np.zeros(3), label=np.zeros(3)), r'shape \(3,\), and not \(H, W\)'),
        *(
            (dict(image=np.zeros((1, 2)), label=np.array([[1, value]])), f'has the value {value}')
            for value in (256, -1, 0.5, np.nan)
        ),
    ],
)
def test_invalid_files_raise(tmp_path, arrays, words):
    np.savez(tmp_path / 'x.npz', **arrays)
    with rejects(words):
        LoadSliceAnnotations()(LoadImageSlice()(dict(img_path=str(tmp_path / 'x.npz'))))


@pytest.mark.parametrize('reduce_zero_label', [False, True])
@pytest.mark.parametrize('label_map', [None, {0: 255, 1: 0, 2: 1}])
def test_classes_equal_those_of_mmsegmentation(reduce_zero_label, label_map, tmp_path):
    label = np.array([[0, 1, 2], [3, 254, 255]], np.uint8)
    np.savez(tmp_path / 'x.npz', image=np.zeros((2, 3)), label=label)
    Image.fromarray(label).save(tmp_path / 'x.png')
    sample = dict(
        img_path=str(tmp_path / 'x.npz'),
        seg_map_path=str(tmp_path / 'x.png'),
        reduce_zero_label=reduce_zero_label,
        label_map=label_map,
        seg_fields=[],
        ori_shape=label.shape,
    )
    ours = LoadSliceAnnotations()(dict(sample))['gt_seg_map']
    theirs = LoadAnnotations()(dict(sample, seg_fields=[]))['gt_seg_map']
    assert ours.dtype == theirs.dtype
    assert (ours == theirs).all()


def test_missing_files_raise(synapse):
    (synapse / 'train.txt').write_text('case0009_slice000\n')
    with rejects("names 'case0009_slice000', and there is neither"):
        slices(synapse, ann_file='train.txt')
    with rejects('has no files'):
        slices(synapse, 'test_vol_h5')


def test_prediction_and_test_pipeline_give_the_same_pixels(synapse):
    init_default_scope('mmseg')
    pipeline = [
        dict(type='vit_plugin.LoadImageSlice', window=(0.2, 0.8)),
        dict(type='mmseg.Resize', scale=(12, 16), keep_ratio=False, interpolation='bicubic'),
        dict(type='vit_plugin.LoadSliceAnnotations'),
        dict(type='mmseg.PackSegInputs'),
    ]
    dataset = VolumeSlices(
        data_root=str(synapse), data_prefix=dict(img_path='train_npz'), pipeline=pipeline
    )
    loader = dict(dataset=dict(type='vit_plugin.VolumeSlices', pipeline=pipeline))
    pixels = PipelineTransform(Config(dict(model=dict(backbone={}), test_dataloader=loader)))
    expected = dataset[4]
    packed = pixels(expected['data_samples'].img_path)
    assert torch.equal(packed['inputs'], expected['inputs'])
    assert packed['data_samples'].ori_shape == (8, 6)
