"""NumPy arrays in archives."""

import gc
import warnings
from types import SimpleNamespace

import numpy as np

from anyfolder.pixels.arrays import open_archive


def test_archive_in_a_cycle_of_references_is_closed(tmp_path):
    np.savez(tmp_path / 'x.npz', a=np.zeros(3))
    cycle = SimpleNamespace(arrays=open_archive(tmp_path / 'x.npz'))
    cycle.file, cycle.arrays.cycle = cycle.arrays.fid, cycle
    del cycle
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        gc.collect()
    assert not caught
