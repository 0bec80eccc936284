"""Errors for wrong input."""

import pytest

from anyfolder.errors import InputError, UnclearError, naming
from anyfolder.limits import LimitError


def named(error: InputError) -> InputError:
    """The error that leaves a block about the folder ``cats``."""
    with pytest.raises(InputError) as caught, naming('cats'):
        raise error
    return caught.value


@pytest.mark.parametrize(
    'error',
    [
        InputError('no images', option='task'),
        LimitError('too large'),
        UnclearError('two tables', format='table', labels=['a.csv']),
    ],
)
def test_named_errors_keep_their_class_and_attributes(error):
    found = named(error)
    assert (type(found), vars(found)) == (type(error), vars(error))
    assert str(found) == f"'cats': {error}"
    assert found.__cause__ is error


def test_errors_with_the_path_stay_unchanged():
    error = UnclearError("two tables in 'cats'")
    assert named(error) is error


def test_path_within_a_word_does_not_name_it():
    assert str(named(InputError('concats 2 images'))) == "'cats': concats 2 images"
