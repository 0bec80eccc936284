"""Predictions as JSON."""

from collections.abc import Mapping
from typing import Any

import mmengine
import numpy as np
import torch
from mmengine.evaluator import DumpResults


class DumpJson(DumpResults):
    """Writes the predictions of a test as JSON: the entries of MMEngine's ``DumpResults``, arrays as lists.

    Args:
        out_file_path: the file, which ends in .json.
    """

    def __init__(self, out_file_path: str) -> None:
        super().__init__(f'{out_file_path}.pkl')  # the parent admits no other name
        self.out_file_path = out_file_path

    def compute_metrics(self, results: list) -> dict:
        mmengine.dump(plain(results), self.out_file_path)
        return {}


def plain(value: Any) -> Any:
    """A value of numbers, strings, lists and dicts, with tensors and arrays as lists, and bytes as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, bytes):  # of a mask in COCO's run lengths
        return value.decode()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
