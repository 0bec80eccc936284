"""Classifiers with MMEngine alone: the classes of a config where MMPretrain is not installed.

Each has the name and the arguments of MMPretrain's or mmcv's class and computes the same. So one
config trains the same model in both, and each reads the other's checkpoints. What has no class here
is an error that says what to install.
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
