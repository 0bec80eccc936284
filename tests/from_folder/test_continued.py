"""A complete model of a run gets the classes of other data."""

from types import SimpleNamespace

from mmengine.config import Config

from vit_plugin.from_folder.continued import adapt_model


def test_sections_that_mmengine_reads_elsewhere_or_adds_are_not_needed():
    """A preprocessor next to the model, and a model with the default ``test_cfg``."""
    preprocessor = dict(type='DetDataPreprocessor', mean=[1.0, 2.0, 3.0], std=[1.0, 1.0, 1.0])
    model = dict(backbone=dict(type='A'), bbox_head=dict(type='B', num_classes=80))
    saved = Config(dict(model=model, data_preprocessor=preprocessor, classes=['a']))
    adapted = adapt_model(saved, SimpleNamespace(classes=('b', 'c'), bands=0, stuff=None))
    assert adapted == dict(
        backbone=dict(type='A'),
        bbox_head=dict(type='B', num_classes=2),
        data_preprocessor=preprocessor,
    )


def eomt_of(classes: list[str], **test_cfg: bool) -> Config:
    """A complete EoMT whose config leaves out defaults, such as the number of queries."""
    heads = dict(
        panoptic_head=dict(type='vit_plugin.EoMTHead', num_things_classes=len(classes)),
        panoptic_fusion_head=dict(num_things_classes=len(classes), num_stuff_classes=0),
    )
    backbone = dict(type='vit_plugin.EoMT', num_classes=len(classes))
    model = dict(backbone=backbone, **heads, test_cfg=test_cfg)
    return Config(dict(model=model, classes=classes))


def test_classes_of_a_backbone_with_the_default_number_of_queries_are_adapted():
    saved = eomt_of(['a', 'b', 'c'], panoptic_on=False, instance_on=True)
    adapted = adapt_model(saved, SimpleNamespace(classes=('b', 'c'), bands=0, stuff=1))
    counts = dict(num_things_classes=1, num_stuff_classes=1)
    assert adapted == dict(
        backbone=dict(type='vit_plugin.EoMT', num_classes=2),
        panoptic_head=dict(type='vit_plugin.EoMTHead', **counts),
        panoptic_fusion_head=counts,
        test_cfg=dict(panoptic_on=True, instance_on=False, max_per_image=100),
        data_preprocessor={},
    )


def test_same_classes_of_another_task_change_the_output():
    saved = eomt_of(['a', 'b'], panoptic_on=False, instance_on=True)
    adapted = adapt_model(saved, SimpleNamespace(classes=('a', 'b'), bands=0, stuff=0))
    assert adapted['test_cfg'] == dict(panoptic_on=True, instance_on=False, max_per_image=100)
