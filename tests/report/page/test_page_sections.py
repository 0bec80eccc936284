"""What the page in the browser says and shows of a picture."""

import cv2
import numpy as np
import pytest
import torch
from rejection import rejects
from trained_models import tiny_classifier

from vit_plugin.files.untrusted_text import markdown
from vit_plugin.inference.prepared_image import PreparedImage
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.classifier import Classifier, classifier_parts
from vit_plugin.report.page import page_sections
from vit_plugin.tasks.classification.class_prediction import ClassPrediction

pytest.importorskip('mmpretrain')
EYES = ['attention', 'rollout', 'features']


@pytest.fixture
def image() -> PreparedImage:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    return PreparedImage(pixels, torch.randn(1, 3, 32, 48), beside=False)


@pytest.fixture
def file(tmp_path, image) -> str:
    cv2.imwrite(str(tmp_path / 'a.png'), image.image)
    return str(tmp_path / 'a.png')


def of_task(trained: TrainedModel, task: str, monkeypatch, **found: np.ndarray) -> TrainedModel:
    """The model without its head, as of a task, with a prediction."""
    trained.model.head, trained.task, trained.has_pixels = None, task, True
    prediction = trained.kind(None, np.array([1]), ['cat'], np.array([0.9]), **found)
    monkeypatch.setattr(trained, 'predict', lambda images: [prediction])
    return trained


def test_every_picture_is_pixels_of_its_own(tiny, image):
    found = page_sections.draw_all(tiny_classifier(tiny), image)
    assert list(found) == [*EYES, 'cam']
    assert len({picture.tobytes() for picture in found.values()}) == 4
    assert all(picture.ndim == 3 and picture.std() > 0 for picture in found.values())


def test_the_photograph_is_not_repeated(tiny, image):
    model = tiny_classifier(tiny)
    apart, together = (
        page_sections.draw_all(model, image._replace(beside=beside))['features']
        for beside in (False, True)
    )
    assert together.shape[1] > 1.8 * apart.shape[1]


def test_the_block_is_that_of_attention_and_rollout(tiny, image):
    model = tiny_classifier(tiny)
    first, last = (page_sections.draw_all(model, image, block) for block in (1, 2))
    assert [name for name in first if not np.array_equal(first[name], last[name])] == [
        'attention',
        'rollout',
    ]


def test_a_picture_that_cannot_be_is_a_sentence(tiny, image, monkeypatch):
    monkeypatch.setattr('vit_plugin.report.pictures.attention_maps.MOST_WEIGHTS', 8)
    found = page_sections.draw_all(tiny_classifier(tiny), image)
    assert 'too many for the memory' in found['attention']
    assert not isinstance(found['features'], str)


def test_a_long_picture_is_refused(tiny, tmp_path):
    cv2.imwrite(str(tmp_path / 'long.png'), np.zeros((8, 800, 3), dtype=np.uint8))
    with rejects('more than 10 times the other; crop it'):
        page_sections.show(tiny_classifier(tiny), str(tmp_path / 'long.png'), size=8)


def test_boxes_are_drawn_above_the_lowest_score(tiny, file, monkeypatch):
    model = of_task(
        tiny_classifier(tiny), 'detection', monkeypatch, boxes=np.array([[2.0, 2, 9, 9]])
    )
    sure, unsure = (
        page_sections.show(model, file, score_thr=score, size=32) for score in (0.5, 0.95)
    )
    assert (sure.text, unsure.text) == ('1 cat', 'nothing')
    assert list(sure.pictures) == [page_sections.FOUND, *EYES]
    drawn, bare = (shown.pictures[page_sections.FOUND] for shown in (sure, unsure))
    enlarged = cv2.imread(file)[..., ::-1].repeat(7, axis=0).repeat(7, axis=1)
    assert np.array_equal(bare, enlarged)
    assert not np.array_equal(drawn, bare)
    assert 'finds objects' in page_sections.about(model)


def test_maps_are_drawn(tiny, file, monkeypatch):
    labels = np.zeros((32, 48), int)
    model = of_task(tiny_classifier(tiny), 'segmentation', monkeypatch, map=labels)
    shown = page_sections.show(model, file, size=32)
    assert shown.text == 'cat 90%'
    assert isinstance(shown.pictures[page_sections.FOUND], np.ndarray)
    assert 'every pixel' in page_sections.about(model)


def test_a_classifier_has_its_scores(tiny, file, monkeypatch):
    model = tiny_classifier(tiny, [f'class {i}' for i in range(12)])
    assert not page_sections.has_answer(model)  # without a test_dataloader
    assert page_sections.show(model, file, size=32).scores == {}
    model.has_pixels = True
    names = ['cat', 'dog']
    found = ClassPrediction(None, np.arange(2), names, np.array([0.75, 0.25]))
    monkeypatch.setattr(model, 'predict', lambda images: [found])
    shown = page_sections.show(model, file, size=32)
    assert shown.scores == dict(cat=0.75, dog=0.25)
    assert list(shown.pictures) == [*EYES, 'cam']
    assert page_sections.about(model).endswith('class 6, class 7 and 4 more.')


def test_weights_without_a_head_show_features(tiny, file):
    model = tiny_classifier(tiny)
    bare = Classifier(classifier_parts(**tiny), num_classes=0)
    bare.data_preprocessor = model.model.data_preprocessor
    model.model, model.has_pixels = bare.eval(), True
    shown = page_sections.show(model, file, size=32)
    assert (shown.text, shown.scores, list(shown.pictures)) == ('', {}, EYES)
    assert page_sections.about(model) == 'The page shows what this model sees in a picture.'


def test_features_of_padding_are_not_drawn(image):
    padded = image._replace(image=image.image[:24], inputs=torch.randn(1, 3, 32, 64))
    assert padded.without_padding(torch.zeros(5, 4, 8)).shape == (5, 3, 6)
    assert image.without_padding(torch.zeros(5, 4, 6)).shape == (5, 4, 6)


def test_names_of_classes_are_no_markdown(tiny):
    name = '![](https://example.org/beacon.png)'
    model = tiny_classifier(tiny, [name, 'b', 'c'])
    model.has_pixels = True
    assert page_sections.about(model).endswith(f'Its classes: {markdown(name)}, b, c.')
