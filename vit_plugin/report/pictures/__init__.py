"""Pictures of what a model has learnt."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attention_distance import attention_distances, draw_attention_distances
    from .attention_maps import attention_rollout, attention_weights, class_attention
    from .charts import draw_learning_curve
    from .class_activation import class_activation
    from .confusion_matrix import draw_confusion_matrix
    from .data_pictures import draw_data
    from .features import draw_feature_colors, feature_colors, patch_features
    from .position_similarity import draw_position_similarity, position_similarity
    from .style import draw_over

# Imported when they are asked for, since they import Matplotlib.
_MODULES = {
    'attention_distances': 'attention_distance',
    'attention_rollout': 'attention_maps',
    'attention_weights': 'attention_maps',
    'class_activation': 'class_activation',
    'class_attention': 'attention_maps',
    'draw_attention_distances': 'attention_distance',
    'draw_confusion_matrix': 'confusion_matrix',
    'draw_data': 'data_pictures',
    'draw_feature_colors': 'features',
    'draw_learning_curve': 'charts',
    'draw_over': 'style',
    'draw_position_similarity': 'position_similarity',
    'feature_colors': 'features',
    'patch_features': 'features',
    'position_similarity': 'position_similarity',
}
__all__ = [
    'attention_distances',
    'attention_rollout',
    'attention_weights',
    'class_activation',
    'class_attention',
    'draw_attention_distances',
    'draw_confusion_matrix',
    'draw_data',
    'draw_feature_colors',
    'draw_learning_curve',
    'draw_over',
    'draw_position_similarity',
    'feature_colors',
    'patch_features',
    'position_similarity',
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f'{__name__}.{_MODULES[name]}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
