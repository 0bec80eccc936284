"""Classification: the class of an image, or its classes."""

from vit_plugin.task import Task

TASK = Task(
    place=1,
    recipe='vit_plugin.tasks.classification.classification_recipe:ClassificationRecipe',
    chooses_model=False,
    flags=('teacher', 'balance'),
)
