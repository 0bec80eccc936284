"""The Gradio components of the page, built without a browser."""

import sys
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from trained_models import tiny_classifier

from vit_plugin.errors import MissingExtraError
from vit_plugin.report.page import browser
from vit_plugin.report.page.page_sections import FOUND, PAGE_SECTIONS, PageAnswer

pytest.importorskip('mmpretrain')


def test_missing_gradio_raises_with_its_extra(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, 'gradio', None)
    with pytest.raises(
        MissingExtraError,
        match=r"vit-plugin demo needs gradio.*pip install -c tests/constraints.txt -e '.\[demo\]'",
    ):
        browser.build_page(tiny_classifier(tiny), 'title')


def test_examples_are_test_images(tiny, tmp_path, monkeypatch):
    for i in range(5):
        cv2.imwrite(str(tmp_path / f'{i}.png'), np.zeros((8, 8, 3), dtype=np.uint8))
    (tmp_path / 'val.txt').write_text(''.join(f'{i}.png 0\n' for i in range(5)))
    model = tiny_classifier(tiny)
    assert browser.find_examples(model) == []
    model.cfg.test_dataloader = dict(
        dataset=dict(
            type='CustomDataset', data_prefix=str(tmp_path), ann_file=str(tmp_path / 'val.txt')
        )
    )
    assert browser.find_examples(model) == [str(tmp_path / f'{i}.png') for i in (0, 2, 4)]
    model.cfg.test_dataloader.dataset.ann_file = 'of another machine.txt'
    assert browser.find_examples(model) == []
    # A data set of torch has no paths of its images.
    monkeypatch.setattr(browser, 'DATASETS', SimpleNamespace(build=lambda dataset: [1, 2, 3]))
    assert browser.find_examples(model) == []


@pytest.mark.parametrize(
    ('task', 'answer', 'sections'),
    [
        ('classification', ['label'], ['attention', 'rollout', 'features', 'cam']),
        ('detection', [], [FOUND, 'attention', 'rollout', 'features']),
    ],
)
def test_components_of_the_page_depend_on_the_task(tiny, task, answer, sections):
    pytest.importorskip('gradio')
    model = tiny_classifier(tiny)
    model.has_pixels, model.task = True, task
    if task == 'detection':
        model.model.head = None
    pictures_of_model = [name for name in sections if name != FOUND]
    before = browser.prediction_outputs(model) + browser.section_outputs(pictures_of_model)
    assert [place.get_block_name() for place in before] == answer + ['markdown', 'image'] * 4
    assert all(PAGE_SECTIONS[name][0] in place.value for name, place in titled(sections, before))
    images = [place for place in before if place.get_block_name() == 'image']
    assert not any(image.visible for image in images)

    pixels = np.zeros((4, 4, 3), np.uint8)
    pictures = {**dict.fromkeys(sections, pixels), 'rollout': 'It is too large.'}
    shown = PageAnswer('1 cat', dict(cat=0.9) if answer else {}, pictures)
    after = browser.prediction_outputs(model, shown) + browser.section_outputs(
        pictures_of_model, shown
    )
    texts = {name: place.value for name, place in titled(sections, after)}
    assert 'It is too large.' in texts['rollout']
    assert ('\n1 cat.' in texts.get(FOUND, '')) == (task == 'detection')
    visible = [place.visible for place in after if place.get_block_name() == 'image']
    assert visible == [name != 'rollout' for name in sections]


def titled(sections: list[str], places: list) -> list[tuple]:
    """The sections with their text components, in order."""
    texts = [place for place in places if place.get_block_name() == 'markdown']
    return list(zip(sections, texts, strict=True))
