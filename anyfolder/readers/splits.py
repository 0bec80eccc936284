"""Splits of a data set: recognize their names, and hold out validation images."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, TypeVar, get_args

import numpy as np

Split = Literal['train', 'val', 'test']
SPLITS: tuple[Split, ...] = get_args(Split)
HELD_OUT_SHARE = 0.1  # fraction of training images held out for validation if no split is given
SEED = 0  # for the choice of these images

# Lower-case words for splits in public data sets, and words ('none') that do not distinguish
# splits: train_images, val2017, TestSet, x_train.
_WORDS = {
    kind: {*words.split()}
    for kind, words in dict(
        train='train training trn trainval',
        val='val valid validation validate validating dev devel',
        test='test testing tst eval evaluation holdout',
        none='set data dataset images image imgs img jpg photos pictures split folder dir part '
        'labels annotations masks coco voc instances public private x y',
    ).items()
}
FILLERS = _WORDS['none']
SPLIT_WORDS: dict[str, Split] = {word: split for split in SPLITS for word in _WORDS[split]}
JOINED_WORD = re.compile(r'(set|data|dataset|images|imgs|annot|lists?|files?)$')
_AT_START = re.compile(rf'^({"|".join(sorted(SPLIT_WORDS, key=len, reverse=True))})[ _-]?')

Item = TypeVar('Item')


def words_in(name: str) -> list[str]:
    """The words of a name, in lower case: ``'TrainSet_2017'`` has train and set."""
    return [word.casefold() for word in re.findall(r'[A-Z]?[a-z]+|[A-Z]+(?![a-z])', name)]


def split_of(name: str) -> Split | None:
    """The split that a folder name stands for, or None if it has other words than fillers."""
    words = [word for word in words_in(name) if word not in FILLERS]
    if len(words) != 1:
        return None
    return SPLIT_WORDS.get(words[0]) or SPLIT_WORDS.get(JOINED_WORD.sub('', words[0]))


def without_split(name: str) -> str:
    """A name in lower case, without a split at its start: train_masks and valmasks -> masks."""
    return _AT_START.sub('', name.casefold())


def split_in(stem: str) -> Split | None:
    """The split among a file name's words, as in ``person_keypoints_val2017``; test comes first.

    Images for both training and validation, as in ``train_val_list``, are for training.
    """
    found = {split for word in words_in(stem) if (split := split_of(word))}
    if is_joint(stem):
        found.discard('val')
    return next((split for split in reversed(SPLITS) if split in found), None)


def is_joint(stem: str) -> bool:
    """True if a file name stands for both training and validation images: ``train_val``."""
    words = [word for word in words_in(stem) if word not in FILLERS]
    splits = [split_of(word) for word in words]
    return 'trainval' in words or ('train', 'val') in pairwise(splits)


def alike_splits(names: Iterable[str]) -> list[str]:
    """Names, if any, that differ only in their split, such as ``seg_train`` and ``seg_test``."""
    by_rest: dict[str, dict[str, Split]] = {}
    for name in names:
        if split := split_in(name):
            rest = ' '.join(word for word in words_in(name) if not split_of(word))
            by_rest.setdefault(rest, {})[name] = split
    return next((list(group) for group in by_rest.values() if len({*group.values()}) > 1), [])


def hold_out(items: list[Item], generator: np.random.Generator) -> tuple[list[Item], list[Item]]:
    """The held-out tenth of the items, at least one if there are two or more, and the others."""
    count = max(round(HELD_OUT_SHARE * len(items)), 1) if len(items) > 1 else 0
    held = set(generator.choice(len(items), count, replace=False).tolist())
    return [items[i] for i in sorted(held)], [item for i, item in enumerate(items) if i not in held]
