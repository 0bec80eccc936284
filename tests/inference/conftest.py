"""An image file that several modules of tests read."""

import cv2
import numpy as np
import pytest


@pytest.fixture
def photo(tmp_path) -> str:
    path = tmp_path / 'photo.png'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
    return str(path)
