"""The texts and pictures that the page shows for an image."""

import cv2
import numpy as np
import pytest
import torch
from rejection import rejects
from trained_models import tiny_classifier

from vit_plugin.files.untrusted_text import escape_markdown
from vit_plugin.inference.prepared_image import PreparedImage
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.classifier import Classifier, classifier_parts
from vit_plugin.report.page import page_sections
from vit_plugin.tasks.classification.class_prediction import ClassPrediction

pytest.importorskip('mmpretrain')
PICTURES = ['attention', 'rollout', 'features']


@pytest.fixture(autouse=True)
def no_reader(monkeypatch):
    """Models of these tests say that they have a pipeline, and have none."""
    monkeypatch.setattr(TrainedModel, '_reader', None)


@pytest.fixture
def image() -> PreparedImage:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    return PreparedImage(pixels, torch.randn(1, 3, 32, 48), next_to_photograph=False)


@pytest.fixture
def file(tmp_path, image) -> str:
    cv2.imwrite(str(tmp_path / 'a.png'), image.image)
    return str(tmp_path / 'a.png')


def as_task(trained: TrainedModel, task: str, monkeypatch, **fields: np.ndarray) -> TrainedModel:
    """Turn a model into one of a task that always predicts the class cat with these fields."""
    trained.model.head, trained.task, trained.has_pixels = None, task, True
    prediction = trained.prediction_class(None, np.array([1]), ['cat'], np.array([0.9]), **fields)
    monkeypatch.setattr(trained, 'predict', lambda images: [prediction])
    return trained


def test_all_pictures_differ(tiny, image):
    pictures = page_sections.draw_all(tiny_classifier(tiny), image)
    assert list(pictures) == [*PICTURES, 'cam']
    assert len({picture.tobytes() for picture in pictures.values()}) == 4
    assert all(picture.ndim == 3 and picture.std() > 0 for picture in pictures.values())


def test_the_photograph_is_shown_next_to_features_on_request(tiny, image):
    model = tiny_classifier(tiny)
    alone, next_to_image = (
        page_sections.draw_all(model, image._replace(next_to_photograph=next_to_photograph))[
            'features'
        ]
        for next_to_photograph in (False, True)
    )
    assert next_to_image.shape[1] > 1.8 * alone.shape[1]


def test_the_block_changes_attention_and_rollout(tiny, image):
    model = tiny_classifier(tiny)
    first, last = (page_sections.draw_all(model, image, block) for block in (1, 2))
    assert [name for name in first if not np.array_equal(first[name], last[name])] == [
        'attention',
        'rollout',
    ]


def test_pictures_that_fail_are_replaced_by_a_sentence(tiny, image, monkeypatch):
    monkeypatch.setattr('vit_plugin.report.pictures.attention_maps.MAX_ATTENTION_WEIGHTS', 8)
    pictures = page_sections.draw_all(tiny_classifier(tiny), image)
    assert 'too many for the memory' in pictures['attention']
    assert not isinstance(pictures['features'], str)


def test_very_long_images_raise(tiny, tmp_path):
    cv2.imwrite(str(tmp_path / 'long.png'), np.zeros((8, 800, 3), dtype=np.uint8))
    with rejects('more than 10 times the other; crop it'):
        page_sections.answer_picture(tiny_classifier(tiny), str(tmp_path / 'long.png'), size=8)


def test_boxes_are_drawn_above_the_lowest_score(tiny, file, monkeypatch):
    model = as_task(
        tiny_classifier(tiny), 'detection', monkeypatch, boxes=np.array([[2.0, 2, 9, 9]])
    )
    with_box, without_box = (
        page_sections.answer_picture(model, file, score_thr=score, size=32) for score in (0.5, 0.95)
    )
    assert (with_box.text, without_box.text) == ('1 cat', 'nothing')
    assert list(with_box.pictures) == [page_sections.FOUND, *PICTURES]
    drawn, plain = (shown.pictures[page_sections.FOUND] for shown in (with_box, without_box))
    # Small images are enlarged before anything is drawn, this one seven times.
    enlarged = cv2.imread(file)[..., ::-1].repeat(7, axis=0).repeat(7, axis=1)
    assert np.array_equal(plain, enlarged)
    assert not np.array_equal(drawn, plain)
    assert 'finds objects' in page_sections.describe_model(model)


def test_maps_are_drawn(tiny, file, monkeypatch):
    labels = np.zeros((32, 48), int)
    model = as_task(tiny_classifier(tiny), 'segmentation', monkeypatch, map=labels)
    shown = page_sections.answer_picture(model, file, size=32)
    assert shown.text == 'cat 90%'
    assert isinstance(shown.pictures[page_sections.FOUND], np.ndarray)
    assert 'every pixel' in page_sections.describe_model(model)


def test_scores_of_a_classifier_are_shown(tiny, file, monkeypatch):
    model = tiny_classifier(tiny, [f'class {i}' for i in range(12)])
    assert not page_sections.has_answer(model)  # without a test_dataloader
    assert page_sections.answer_picture(model, file, size=32).scores == {}
    model.has_pixels = True
    names = ['cat', 'dog']
    prediction = ClassPrediction(None, np.arange(2), names, np.array([0.75, 0.25]))
    monkeypatch.setattr(model, 'predict', lambda images: [prediction])
    shown = page_sections.answer_picture(model, file, size=32)
    assert shown.scores == dict(cat=0.75, dog=0.25)
    assert list(shown.pictures) == [*PICTURES, 'cam']
    assert page_sections.describe_model(model).endswith('class 6, class 7 and 4 more.')


def test_weights_without_a_head_show_features(tiny, file):
    model = tiny_classifier(tiny)
    headless = Classifier(classifier_parts(**tiny), num_classes=0)
    headless.data_preprocessor = model.model.data_preprocessor
    model.model, model.has_pixels = headless.eval(), True
    shown = page_sections.answer_picture(model, file, size=32)
    assert (shown.text, shown.scores, list(shown.pictures)) == ('', {}, PICTURES)
    assert (
        page_sections.describe_model(model) == 'The page shows what this model sees in a picture.'
    )


def test_features_of_padding_are_not_drawn(image):
    padded = image._replace(image=image.image[:24], inputs=torch.randn(1, 3, 32, 64))
    assert padded.without_padding(torch.zeros(5, 4, 8)).shape == (5, 3, 6)
    assert image.without_padding(torch.zeros(5, 4, 6)).shape == (5, 4, 6)


def test_names_of_classes_are_escaped(tiny):
    name = '![](https://example.org/beacon.png)'
    model = tiny_classifier(tiny, [name, 'b', 'c'])
    model.has_pixels = True
    assert page_sections.describe_model(model).endswith(
        f'Its classes: {escape_markdown(name)}, b, c.'
    )
