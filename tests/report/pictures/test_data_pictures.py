"""Charts of the labels and pictures of a batch, drawn without a change to the data set."""

import random

import numpy as np
import pytest
import torch
from mmengine.dataset import BaseDataset, ConcatDataset, RepeatDataset
from mmengine.structures import BaseDataElement, PixelData
from torch.utils.data import IterableDataset

from anyfolder.sampling import evenly_spaced
from vit_plugin.data.seeded import SeededDataset
from vit_plugin.report.pictures import draw_data
from vit_plugin.report.pictures.data_labels import MAX_COUNTED_SAMPLES
from vit_plugin.report.pictures.data_pictures import copy_dataset, data_figures

CLASSES = ('cat', 'dog', 'cow')


class Stateful:
    """A step that draws random numbers and keeps a state, like MMDetection's cached mosaics."""

    def __init__(self):
        self.drawn = []

    def __call__(self, info):
        self.drawn.append(random.random() + np.random.random() + float(torch.rand(())))
        sample = BaseDataElement(metainfo=dict(img_path=info['img_path']))
        if 'gt_label' in info:
            sample.gt_label = torch.tensor([info['gt_label']])
        else:
            sample.gt_sem_seg = PixelData(data=torch.from_numpy(info['gt_seg_map'])[None])
        return dict(
            inputs=torch.full((3, 8, 8), len(self.drawn) % 256, dtype=torch.uint8),
            data_samples=sample,
        )


class ReadMask:
    """A step that makes the masks of two images, of 180 pixels each."""

    def __call__(self, info):
        return dict(
            info,
            gt_seg_map=np.array([[0] * 90, [255] * 90]) if info['number'] else np.full((2, 90), 2),
        )


def dataset(count: int, *steps, **fields) -> BaseDataset:
    """A data set with these steps; ``fields`` are functions of the sample's number."""

    class Numbered(BaseDataset):
        METAINFO = dict(classes=CLASSES)

        def load_data_list(self):
            return [
                dict(
                    img_path=f'some/{i}.jpg',
                    number=i,
                    **{name: value(i) for name, value in fields.items()},
                )
                for i in range(count)
            ]

    return Numbered(pipeline=[*steps, Stateful()])


def bar_labels(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.nightly
def test_classes_are_counted_and_a_batch_is_drawn(tmp_path):
    train = dataset(5, gt_label=lambda i: i % 2)
    assert draw_data(train, tmp_path, dataset(2, gt_label=lambda i: 2)) == [
        tmp_path / 'labels.png',
        tmp_path / 'train_batch.png',
    ]
    assert all(path.stat().st_size > 1000 for path in tmp_path.iterdir())
    figures = dict(data_figures(train, dataset(2, gt_label=lambda i: 2)))
    assert bar_labels(figures['labels']) == ['3', '2', '0', '0', '0', '2']
    assert figures['labels'].get_suptitle() == 'train: 5 images; validation: 2 images'
    assert [axes.get_title() for axes in figures['train_batch'].axes[:5]] == [
        f'{i}.jpg\n{("cat", "dog")[i % 2]}' for i in range(5)
    ]


def test_data_sets_and_random_generators_stay_unchanged():
    data = dataset(5, gt_label=lambda i: 0)
    wrapped = SeededDataset(RepeatDataset(data, 2), 0)
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    first, second = (dict(data_figures(wrapped)) for _ in range(2))
    assert states == (
        random.getstate(),
        np.random.get_state()[1].tolist(),
        torch.get_rng_state().tolist(),
    )
    assert data.pipeline.transforms[0].drawn == []
    assert bar_labels(first['labels']) == bar_labels(second['labels']) == ['10', '0', '0']
    drawn = [
        figure['train_batch'].axes[3].get_images()[0].get_array() for figure in (first, second)
    ]
    assert np.array_equal(*drawn)


def test_boxes_are_counted_without_reading_images():
    def objects(i):
        return [
            dict(bbox=[0, 0, 10, 20], bbox_label=i % 2, ignore_flag=0),
            dict(bbox=[0, 0, 10, 20], bbox_label=2, ignore_flag=1),
        ]

    def fail(info):
        raise AssertionError

    data = dataset(4, fail, instances=objects, width=lambda i: 40, height=lambda i: 40)
    name, figure = next(data_figures(data))
    assert name == 'labels'
    assert bar_labels(figure) == ['2', '2', '0']
    assert len(figure.axes) == 3
    assert figure.get_suptitle() == 'train: 4 objects in 4 images'


def test_pixels_are_counted_up_to_the_step_that_reads_the_mask():
    pytest.importorskip('supervision')
    figures = dict(data_figures(RepeatDataset(dataset(2, ReadMask(), seg_map_path=str), 1)))
    assert bar_labels(figures['labels']) == ['90', '0', '180']
    assert [text.get_text() for text in figures['train_batch'].legends[0].get_texts()] == [
        'cat',
        'cow',
    ]


@pytest.mark.parametrize('limit', [MAX_COUNTED_SAMPLES, 200, 3])
def test_samples_are_evenly_spaced_up_to_a_limit(limit):
    assert len(evenly_spaced(10 * limit + 1, limit)) == limit
    assert evenly_spaced(7, 3) == [0, 3, 6]
    assert evenly_spaced(2, limit) == [0, 1]


def test_data_without_classes_or_length_have_no_pictures():
    class Stream(IterableDataset):
        metainfo = dict(classes=CLASSES)

        def __iter__(self):
            raise AssertionError

    data = dataset(2, gt_label=int)
    data._metainfo = {}
    assert not [*data_figures(Stream()), *data_figures(data)]


def test_unreadable_images_are_skipped():
    def fail(info):
        if info['number'] == 1:
            raise FileNotFoundError(2, 'missing', info['img_path'])
        return info

    batch = dict(data_figures(dataset(3, fail, gt_label=int)))['train_batch']
    assert [axes.get_title()[:1] for axes in batch.axes[:2]] == ['0', '2']


def test_copies_share_samples_and_have_their_own_pipeline():
    data = dataset(3, gt_label=int)
    copied = copy_dataset(ConcatDataset([data])).datasets[0]
    assert copied.pipeline is not data.pipeline
    assert copied.data_bytes is data.data_bytes
