"""Compare the classes of a config with the categories of its annotation file."""

import json

import pytest
from rejection import rejects

from vit_plugin.config.annotated_classes import check_annotations

NAMES = ('square', 'triangle', 'disc')


class CocoDataset:
    """A stand-in for MMDetection's class, which is recognized by its name."""


class XMLDataset:
    """A stand-in for MMDetection's class, which is recognized by its name."""


class Shapes(CocoDataset):
    """A data set class with its own classes."""

    METAINFO = dict(classes=NAMES)


class Cells(XMLDataset):
    METAINFO = {}


def check(place: str, dataset: dict) -> None:
    check_annotations(place, dataset, Shapes)


@pytest.fixture
def make_dataset(tmp_path):
    """A function that writes a file with one annotation, and returns the config of its data set."""

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
        (('square', 'disc'), NAMES),  # some of the categories
        (NAMES, NAMES[:2]),  # a part of the data without the last category
    ],
)
def test_matching_classes_pass(make_dataset, classes, categories):
    check('data', make_dataset(classes, categories))


@pytest.mark.parametrize(
    ('classes', 'categories', 'words'),
    [
        (('Square', 'triangle', 'disc'), NAMES, "no 'Square' in .*did you mean square"),
        (('cat', 'dog'), NAMES, "no 'cat' in .*it has disc, square, triangle"),
        (('disc', 'square', 'triangle'), NAMES, 'begin with square, triangle, disc'),
        (NAMES, ('square', 'disc'), 'begin with square, disc'),
    ],
)
def test_classes_that_would_be_lost_or_misnamed_raise(make_dataset, classes, categories, words):
    with rejects(f'^data.metainfo.classes: .*{words}'):
        check('data', make_dataset(classes, categories))


def test_classes_of_a_data_set_class_are_compared(make_dataset):
    cfg = dict(make_dataset(()), metainfo={})
    check('data', cfg)
    cfg = dict(make_dataset((), categories=('Square', 'triangle', 'disc')), metainfo={})
    with rejects("no 'square' in"):
        check('data', cfg)
    check_annotations('data', cfg, type('COCO', (Shapes,), dict(__module__='mmdet.datasets.coco')))


def test_classes_may_be_the_lines_of_a_file(make_dataset, tmp_path):
    """MMEngine reads the file."""
    (tmp_path / 'classes.txt').write_text('\n'.join(NAMES))
    check('data', make_dataset(str(tmp_path / 'classes.txt')))
    (tmp_path / 'classes.txt').write_text('Square\ntriangle\ndisc\n')
    with rejects("no 'Square' in"):
        check('data', make_dataset(str(tmp_path / 'classes.txt')))


def test_a_name_that_is_no_file_raises(make_dataset):
    with rejects("metainfo.classes='square' is no text file of names; give one, or a list"):
        check('train', make_dataset('square'))


def test_masks_without_segmentation_raise(make_dataset):
    check('data', make_dataset(NAMES, with_mask=True, segmentation=[[0, 0, 2, 0, 2, 2]]))
    with rejects('^data.ann_file: the annotation 7 has no segmentation'):
        check('data', make_dataset(NAMES, with_mask=True))


def test_other_files_raise(make_dataset, tmp_path):
    cfg = make_dataset(NAMES)
    (tmp_path / 'x.json').write_text('[]')
    with rejects('^data.ann_file=.*x.json.*cannot be read'):
        check('data', cfg)
    cfg = make_dataset(NAMES, with_mask=True)
    content = json.loads((tmp_path / 'x.json').read_text())
    (tmp_path / 'x.json').write_text(json.dumps(dict(content, annotations=[7])))
    with rejects('^data.ann_file=.*x.json.*cannot be read'):
        check('data', cfg)


def test_names_in_files_of_pascal_voc_are_compared(tmp_path):
    (tmp_path / 'list.txt').write_text('a\nb\n')
    (tmp_path / 'Annotations').mkdir()
    for file, name in (('a', 'RBC'), ('b', 'WBC')):
        text = f'<annotation><object><name>{name}</name></object></annotation>'
        (tmp_path / f'Annotations/{file}.xml').write_text(text)
    cfg = dict(data_root=str(tmp_path), ann_file='list.txt')
    for valid in (('RBC', 'WBC', 'Platelets'), ('WBC', 'RBC'), ('WBC',)):
        check_annotations('data', dict(cfg, metainfo=dict(classes=valid)), Cells)
    for invalid, words in (
        (('rbc', 'WBC'), "no 'rbc' in .*did you mean RBC"),
        (('a',), "no 'a' in"),
    ):
        with rejects(f'^data.metainfo.classes: there is {words}'):
            check_annotations('data', dict(cfg, metainfo=dict(classes=invalid)), Cells)
    (tmp_path / 'Annotations/b.xml').write_text('<annotation>')
    with rejects(r"b\.xml' is not XML"):
        check_annotations('data', dict(cfg, metainfo=dict(classes=('RBC',))), Cells)


def test_mmdetection_numbers_classes_in_the_order_of_the_file(make_dataset, tmp_path):
    """The reason for the check of the order."""
    mmdet = pytest.importorskip('mmdet.datasets')
    cfg = make_dataset(('disc', 'square'))
    built = mmdet.CocoDataset(**dict(cfg, pipeline=[]), lazy_init=True)
    built.load_data_list()
    assert built.cat2label == {1: 0, 3: 1}  # squares would be called discs
