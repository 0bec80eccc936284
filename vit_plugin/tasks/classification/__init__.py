"""Classification: the class of an image, or its classes."""

from vit_plugin.task import Task

TASK = Task(
    position=1,
    recipe='vit_plugin.tasks.classification.classification_recipe:ClassificationRecipe',
    chooses_model=False,
    flags=('teacher', 'balance'),
    outcomes='vit_plugin.tasks.classification.class_outcomes:ClassOutcomes',
    labels='vit_plugin.tasks.classification.class_labels:CLASS_LABELS',
    prediction='vit_plugin.tasks.classification.class_prediction:ClassPrediction',
    framework='mmpretrain',
    deployed={
        ('head', ''): 'vit_plugin.tasks.classification.deployed_classifier:DeployedClassifier',
    },
    hub='image-classification',
    written='vit_plugin.tasks.classification.written_classifier:WRITTEN_CLASSIFIER',
    ability='says which class a picture is of',
)
