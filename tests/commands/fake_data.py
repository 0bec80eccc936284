"""A data set for configs that use no types of this package, which import this module by name."""

import torch
from mmengine.registry import DATASETS
from torch.utils.data import Dataset


@DATASETS.register_module(force=True)
class FakeData(Dataset):
    """Four images of 32 pixels."""

    def __init__(self, num_classes: int) -> None:
        self.metainfo = dict(classes=[f'class {i}' for i in range(num_classes)])

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> dict:
        from mmpretrain.structures import DataSample

        return dict(
            inputs=torch.zeros(3, 32, 32), data_samples=DataSample().set_gt_label(index % 3)
        )
