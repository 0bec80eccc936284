"""The metadata of an exported file state its classes, its steps, and how to read its outputs."""

import json
from types import SimpleNamespace

import mmpretrain.models
import numpy as np
import pytest
from extras import needs_mmseg

from vit_plugin.deploy.export_facts import facts_of, fill_of
from vit_plugin.deploy.input_sizes import sizes_of_test
from vit_plugin.deploy.pipeline_steps import pixel_steps_of
from vit_plugin.projects.mmengine_alone import cls_heads
from vit_plugin.tasks.detection.box_prediction import BoxPrediction


def facts_without_a_pipeline(**components) -> dict:
    """The metadata of a model with these components, whose test pipeline is unknown."""
    trained = SimpleNamespace(
        classes=['cat'],
        prediction_class=BoxPrediction,
        slices=None,
        training_size=(8, 12),
        has_pixels=False,
        model=SimpleNamespace(
            backbone=SimpleNamespace(img_size=(8, 12)),
            data_preprocessor=SimpleNamespace(
                to_rgb=True,
                mean=np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1),
                std=np.ones((3, 1, 1)),
            ),
            **components,
        ),
    )
    return json.loads(facts_of(trained, sizes_of_test(trained), pixel_steps_of(trained)))


def test_images_are_stretched_without_a_pipeline():
    facts = facts_without_a_pipeline()
    assert facts == dict(
        classes=['cat'],
        multi_label=False,
        align_corners=False,
        usual=[8, 12],
        rgb=True,
        patch=1,
        steps=[dict(resize=['exact', 12, 8], interpolation='bilinear', backend='cv2')],
    )


@pytest.mark.parametrize(
    ('kind', 'multi_label'),
    [
        (mmpretrain.models.LinearClsHead, False),
        (mmpretrain.models.MultiLabelLinearClsHead, True),
        (cls_heads.LinearClsHead, False),
        (cls_heads.MultiLabelLinearClsHead, True),
    ],
)
def test_heads_of_several_labels_are_known_with_and_without_mmpretrain(kind, multi_label):
    facts = facts_without_a_pipeline(head=kind.__new__(kind))  # only its class matters
    assert facts['multi_label'] is multi_label


def test_the_fill_is_normalized_to_the_pad_value():
    from mmengine.model import ImgDataPreprocessor

    def fill(channels: int = 3, **arguments) -> list[float]:
        preprocessor = ImgDataPreprocessor(**arguments)
        return fill_of(SimpleNamespace(data_preprocessor=preprocessor), channels)

    pixels = dict(mean=[1.0, 2.0, 3.0], std=[4.0, 5.0, 6.0])
    assert fill(**pixels, bgr_to_rgb=True) == [3.0, 2.0, 1.0]
    assert fill(**pixels, pad_value=0.5) == [3.0, 4.5, 6.0]
    assert fill(pad_value=7) == [7.0] * 3
    assert fill(channels=5, pad_value=7) == [7.0] * 5


@needs_mmseg
def test_the_fill_of_a_segmentor_is_its_pad_val():
    from mmseg.models import SegDataPreProcessor

    preprocessor = SegDataPreProcessor(size_divisor=8, pad_val=7)
    assert fill_of(SimpleNamespace(data_preprocessor=preprocessor)) == [7.0] * 3
