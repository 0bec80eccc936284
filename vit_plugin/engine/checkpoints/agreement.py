"""What one process finds out, known to all."""

from collections.abc import Callable
from typing import Any, TypeVar

from mmengine.dist import broadcast_object_list, get_world_size, is_main_process

from vit_plugin.errors import ConfigError

Answer = TypeVar('Answer')


def agreed(find: Callable[[], Answer]) -> Answer:
    """Call a function in the main process. All processes return its result.

    Raises:
        ConfigError: the one that the function raised, the same on every process.
    """
    if get_world_size() == 1:
        return find()
    answer: list[Any] = [None, None]
    if is_main_process():
        try:
            answer = [find(), None]
        except ConfigError as error:
            answer = [None, str(error)]
    broadcast_object_list(answer)
    if answer[1]:
        raise ConfigError(answer[1])
    return answer[0]
