"""Pictures of data and of a run, and of what a model sees: attention, features, positions."""

from .attention_distance import attention_distances, draw_attention_distances
from .attention_maps import attention_rollout, attention_weights, class_attention
from .charts import draw_learning_curve
from .class_activation import class_activation
from .confusion_matrix import draw_confusion_matrix
from .data_pictures import draw_data
from .features import draw_feature_colors, feature_colors, patch_features
from .overlay import draw_over
from .position_similarity import draw_position_similarity, position_similarity

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
