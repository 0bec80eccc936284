"""Where a run says that it is."""

import pytest
from campaigns.tiny_run import build, tiny_cfg

from vit_plugin.engine import WatchHook
from vit_plugin.engine.faults.places import Place


class Recorder:
    """Stands for the threads of a watch."""

    def __init__(self) -> None:
        self.place, self.places = Place(), []

    def move(self, step: int, phase: str) -> None:
        self.place.enter(step, phase)
        self.places.append((self.place.order(), step, phase))

    def leave(self) -> None:
        pass


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('loop', 'told'), [
    ('epoch', [(4, 'step'), (4, 'epoch'), (4, 'saving'), (4, 'saved'), (5, 'loading'), (4, 'validation'),
               (4, 'evaluation'), (4, 'saving'), (4, 'saved'), (5, 'loading'), (5, 'step')]),
    ('iter', [(4, 'step'), (4, 'saving'), (4, 'saved'), (5, 'loading'), (4, 'validation'), (4, 'evaluation'),
              (4, 'saving'), (4, 'saved'), (5, 'loading'), (5, 'step')])])
def test_a_rank_only_comes_further(tmp_path, loop, told):
    length = dict(by_epoch=True, max_epochs=2) if loop == 'epoch' else dict(by_epoch=False, max_iters=5, val_interval=4)
    runner = build(tiny_cfg(tmp_path, loop, train_cfg=length))
    hook = next(hook for hook in runner.hooks if isinstance(hook, WatchHook))
    hook._watch = recorder = Recorder()
    runner.train()
    orders = [order for order, _, _ in recorder.places]
    assert orders == sorted(orders)
    places = [place for i, (_, *place) in enumerate(recorder.places) if i == 0 or place != recorder.places[i - 1][1:]]
    assert tuple(places[0]) == (1, 'first')
    places = list(dict.fromkeys(map(tuple, places)))
    begin = places.index((4, 'step'))
    assert places[begin:places.index((5, 'step')) + 1] == list(dict.fromkeys(told))
