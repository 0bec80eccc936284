"""Classifiers with only MMEngine: replacements for classes of MMPretrain and mmcv.

Each has the name and arguments of the original and computes the same. So one config trains the same
model with both, and each reads the other's checkpoints. For classes without a replacement, an error
says what to install.
"""

from vit_plugin.project import Project


def _of(module: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, f'vit_plugin.projects.mmengine_alone.{module}')


PROJECT = Project(
    registered={},
    stand_ins={
        'MODELS': {
            **_of('image_classifier', 'ImageClassifier'),
            **_of('cls_heads', 'ClsHead', 'LinearClsHead', 'MultiLabelLinearClsHead'),
            **_of('cls_losses', 'CrossEntropyLoss', 'LabelSmoothLoss'),
            **_of('cls_preprocessors', 'ClsDataPreprocessor', 'SelfSupDataPreprocessor'),
        },
        'DATASETS': _of('labeled_images', 'BaseDataset', 'CustomDataset', 'MultiLabelDataset'),
        'TRANSFORMS': {
            **_of('steps', 'CenterCrop', 'LoadImageFromFile', 'PackInputs', 'Resize', 'ResizeEdge'),
            **_of('random_steps', 'RandAugment', 'RandomFlip', 'RandomResizedCrop', 'Rotate'),
        },
        'METRICS': _of('cls_metrics', 'Accuracy', 'AveragePrecision'),
        'HOOKS': _of('no_pictures', 'VisualizationHook'),
        'VISUALIZERS': _of('no_pictures', 'UniversalVisualizer'),
        '': _of('image_classifier', 'BaseClassifier'),
    },
)
