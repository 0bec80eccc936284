"""Fixtures of the tests that train."""

from collections.abc import Iterator

import pytest

from vit_plugin.report import ReportHook


@pytest.fixture(autouse=True, scope='module')
def no_pictures() -> Iterator[None]:
    """Draw no pictures at the end of a run, since they take 0.8 s of its 1.9 s.

    Modules that test pictures replace this fixture by one that does nothing.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReportHook, '_save', lambda *_: None)
        yield


@pytest.fixture
def launched(monkeypatch) -> None:
    """Set the variables that MMEngine's launcher needs, without the address of another run."""
    for name in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'LOCAL_RANK'):
        monkeypatch.setenv(name, '1')
    monkeypatch.delenv('MASTER_ADDR', raising=False)
