"""At the end of a training, the log names a command that can be copied."""

import shlex
from types import SimpleNamespace

from vit_plugin.report.training_summary import next_command


def test_the_next_command_names_an_image_of_the_data(tmp_path):
    image = tmp_path / "a cat's.png"
    image.touch()
    data = SimpleNamespace(get_data_info=lambda _: dict(img_path=str(image)))
    loader = SimpleNamespace(dataset=data)
    runner = SimpleNamespace(
        train_dataloader=loader,
        _val_loop=None,
        work_dir='work dirs/a',
        cfg=dict(test_dataloader=dict(batch_size=1)),
    )
    words = shlex.split(next_command(runner))
    assert words == ['infer', 'work dirs/a', str(image), '--out', 'pictures']
    runner.cfg = {}  # a pre-training, which has no test pipeline to predict with
    words = shlex.split(next_command(runner))
    assert words == ['train', '--data', 'FOLDER', '--weights', 'work dirs/a']
