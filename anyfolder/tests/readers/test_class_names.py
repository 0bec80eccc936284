"""Class names that look the same."""

import pytest

from anyfolder.readers.class_names import class_name, near_twins, warn_merged
from anyfolder.readers.findings import Findings


@pytest.mark.parametrize(
    'name',
    [
        ' traffic light ',
        'traffic\u00a0light',
        'traffic  light',
        'traffic\tlight',
        'traffic\nlight',
        'traffic\u3000light',
        'traffic\u2009light',
        'traf\u200bfic light',
        '\ufefftraffic light',
        'traf\u00adfic light',
        '\uff54raffic light',
    ],
)
def test_names_that_look_the_same_become_equal(name):
    assert class_name(name) == 'traffic light'


@pytest.mark.parametrize(
    'name', ['caf\u00e9', 'm\u00b2', '\u0645\u200c\u062e', '\u732b', 'a-b', '\u2764\u200d\u2764']
)
def test_letters_with_a_meaning_are_kept(name):
    assert class_name(name) == name


@pytest.mark.parametrize(
    ('name', 'other', 'are_twins'),
    [
        ('Car', 'car', True),
        ('traffic_light', 'traffic light', True),
        ('traffic-light', 'trafficlight', True),
        ('\u0441ar', 'car', True),  # Cyrillic
        ('\u0391lpha', 'alpha', True),  # Greek
        ('CAR', '\u0421\u0410R', True),
        ('car (1)', 'Car', True),
        ('car - Copy (2)', 'car', True),
        ('car', 'cart', False),
        ('1_0', '10', False),
        ('\u043a\u043e\u0442', '\u043a\u0438\u0442', False),
    ],
)
def test_near_twins_have_the_same_key(name, other, are_twins):
    keys = {*near_twins([name, other]).values()}
    assert (len(keys) == 1) == are_twins


def test_merged_names_are_reported():
    findings = Findings()
    warn_merged(['car', 'car ', 'c\u00a0ar', 'c ar'], findings)
    assert findings.rows() == [
        ('class names that look the same, taken as one', 1, ["'c\\xa0ar' and 'c ar'"])
    ]
