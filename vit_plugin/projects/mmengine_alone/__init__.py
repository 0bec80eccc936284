"""Classifiers with only MMEngine: replacements for classes of MMPretrain and mmcv.

Each has the name and arguments of the original and computes the same, bit for bit. So one config
trains the same model with MMPretrain and without it, and checkpoints work in both. For classes
without a replacement, an error says what to install.
"""

from vit_plugin.project import Project


def _in_module(module: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, f'vit_plugin.projects.mmengine_alone.{module}')


PROJECT = Project(
    registered={},
    stand_ins={
        'MODELS': {
            **_in_module('image_classifier', 'ImageClassifier'),
            **_in_module('cls_heads', 'ClsHead', 'LinearClsHead', 'MultiLabelLinearClsHead'),
            **_in_module('cls_losses', 'CrossEntropyLoss', 'LabelSmoothLoss'),
            **_in_module('cls_preprocessors', 'ClsDataPreprocessor', 'SelfSupDataPreprocessor'),
        },
        'DATASETS': _in_module(
            'labeled_images', 'BaseDataset', 'CustomDataset', 'MultiLabelDataset'
        ),
        'TRANSFORMS': {
            **_in_module(
                'steps', 'CenterCrop', 'LoadImageFromFile', 'PackInputs', 'Resize', 'ResizeEdge'
            ),
            **_in_module(
                'random_steps', 'RandAugment', 'RandomFlip', 'RandomResizedCrop', 'Rotate'
            ),
        },
        'METRICS': _in_module('cls_metrics', 'Accuracy', 'AveragePrecision'),
        'HOOKS': _in_module('no_pictures', 'VisualizationHook'),
        'VISUALIZERS': _in_module('no_pictures', 'UniversalVisualizer'),
        # It is imported by our own classes, but no config names it.
        '': _in_module('image_classifier', 'BaseClassifier'),
    },
)
