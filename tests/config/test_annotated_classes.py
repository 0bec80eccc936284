"""The classes of a config and the categories of its file."""

import json

import pytest
from rejection import rejects

from vit_plugin.config.annotated_classes import check_annotations

NAMES = ('square', 'triangle', 'disc')


class CocoDataset:
    """MMDetection's, as far as it is asked."""


class XMLDataset:
    """Likewise."""


class Shapes(CocoDataset):
    """A data set of a project, with classes of its own."""

    METAINFO = dict(classes=NAMES)


class Cells(XMLDataset):
    METAINFO = {}


def check(at: str, dataset: dict) -> None:
    check_annotations(at, dataset, Shapes)


@pytest.fixture
def dataset(tmp_path):
    """The config of a data set, for class names and entries of its only annotation."""

    def make(classes: tuple[str, ...], categories=NAMES, with_mask=False, **entries) -> dict:
        content = dict(
            images=[],
            annotations=[dict(id=7, image_id=1, category_id=1, bbox=[0, 0, 2, 2], **entries)],
            categories=[dict(id=i, name=name) for i, name in enumerate(categories, 1)],
        )
        (tmp_path / 'x.json').write_text(json.dumps(content))
        return dict(
            data_root=str(tmp_path),
            ann_file='x.json',
            metainfo=dict(classes=classes),
            pipeline=[dict(type='LoadAnnotations', with_bbox=True, with_mask=with_mask)],
        )

    return make


@pytest.mark.parametrize(
    ('classes', 'categories'),
    [
        (NAMES, NAMES),
        (('square', 'disc'), NAMES),  # a choice of the categories
        (NAMES, NAMES[:2]),  # a part of the data that lacks the last
    ],
)
def test_what_fits(dataset, classes, categories):
    check('data', dataset(classes, categories))


@pytest.mark.parametrize(
    ('classes', 'categories', 'words'),
    [
        (('Square', 'triangle', 'disc'), NAMES, "no 'Square' in .*did you mean square"),
        (('cat', 'dog'), NAMES, "no 'cat' in .*it has disc, square, triangle"),
        (('disc', 'square', 'triangle'), NAMES, 'begin with square, triangle, disc'),
        (NAMES, ('square', 'disc'), 'begin with square, disc'),
    ],
)
def test_what_would_be_left_out_or_misnamed(dataset, classes, categories, words):
    with rejects(f'^data.metainfo.classes: .*{words}'):
        check('data', dataset(classes, categories))


def test_the_classes_of_a_type(dataset):
    cfg = dict(dataset(()), metainfo={})
    check('data', cfg)
    cfg = dict(dataset((), categories=('Square', 'triangle', 'disc')), metainfo={})
    with rejects("no 'square' in"):
        check('data', cfg)
    check_annotations('data', cfg, type('COCO', (Shapes,), dict(__module__='mmdet.datasets.coco')))


def test_masks_need_outlines(dataset):
    check('data', dataset(NAMES, with_mask=True, segmentation=[[0, 0, 2, 0, 2, 2]]))
    with rejects('^data.ann_file: the annotation 7 has no segmentation'):
        check('data', dataset(NAMES, with_mask=True))


def test_another_file_is_a_sentence(dataset, tmp_path):
    cfg = dataset(NAMES)
    (tmp_path / 'x.json').write_text('[]')
    with rejects('^data.ann_file=.*x.json.*cannot be read'):
        check('data', cfg)


def test_names_in_files_of_pascal_voc(tmp_path):
    (tmp_path / 'list.txt').write_text('a\nb\n')
    (tmp_path / 'Annotations').mkdir()
    for file, name in (('a', 'RBC'), ('b', 'WBC')):
        text = f'<annotation><object><name>{name}</name></object></annotation>'
        (tmp_path / f'Annotations/{file}.xml').write_text(text)
    cfg = dict(data_root=str(tmp_path), ann_file='list.txt')
    for right in (('RBC', 'WBC', 'Platelets'), ('WBC', 'RBC'), ('WBC',)):
        check_annotations('data', dict(cfg, metainfo=dict(classes=right)), Cells)
    for wrong, words in ((('rbc', 'WBC'), "no 'rbc' in .*did you mean RBC"), (('a',), "no 'a' in")):
        with rejects(f'^data.metainfo.classes: there is {words}'):
            check_annotations('data', dict(cfg, metainfo=dict(classes=wrong)), Cells)
    (tmp_path / 'Annotations/b.xml').write_text('<annotation>')
    with rejects(r"b\.xml' is not XML"):
        check_annotations('data', dict(cfg, metainfo=dict(classes=('RBC',))), Cells)


def test_mmdetection_numbers_by_the_file(dataset, tmp_path):
    mmdet = pytest.importorskip('mmdet.datasets')
    cfg = dataset(('disc', 'square'))
    built = mmdet.CocoDataset(**dict(cfg, pipeline=[]), lazy_init=True)
    built.load_data_list()
    assert built.cat2label == {1: 0, 3: 1}  # so that squares would be called discs
