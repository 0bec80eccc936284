"""What the config in a checkpoint may name: a table of places, classes and arguments.

A :class:`Place` is a kind of section in a config, such as a model, a transform or a data set.
``PLACES`` lists its allowed classes, and has a :data:`Rule` for each of their arguments that may
have strings or sections. ``USES`` lists the top-level settings that each use of a checkpoint needs.
:mod:`vit_plugin.untrusted.admission` compares configs with it, and refuses everything else.

Numbers, booleans and None are accepted for every argument: none of these classes opens, imports or
downloads anything because of one. Strings are accepted only for the argument names below, each with
a pattern for its values. Except for the paths of data sets and metrics, none of these arguments
takes a file, an address, a module or an expression in any class of these modules.

``benchmarks/hostile_configs.py`` gives hostile strings to every argument of every registered
class, and listens to what Python opens, imports and runs.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from mmengine import registry as root

SCOPES = ('mmengine', 'mmpretrain', 'mmdet', 'mmseg', 'vit_plugin')

NOTHING = re.compile(r'(?!)')  # no string
ANY = re.compile(r'.*', re.DOTALL)  # class names, which are only displayed
WORD = re.compile(r'[\w.+-]*')
ARCH = re.compile(r'(timm://)?[\w.+-]*(/\w+)?')
# Any path on this machine. On Windows, one with \\ or \?? at its start may be on another.
FOLDER = re.compile(r'(?!.*://)(?![/\\]([/\\]|\?\?)).*')
# A path without `..`, such as one inside the folder of the data. It may be absolute.
NO_PARENT = re.compile(rf'(?!(.*[/\\])?\.\.([/\\]|$)){FOLDER.pattern}')
LISTING = re.compile(rf'({NO_PARENT.pattern}\.(txt|csv|json))?')
PATHS = (FOLDER, NO_PARENT, LISTING)  # patterns for paths; a number would be a file descriptor
PADDING = re.compile('zeros?|circular|reflect|replicate')  # other values would be looked up by name
BACKEND = re.compile('cv2|pillow|turbojpeg|tifffile|numpy|nifti|local|disk')

# The rule of an argument: a pattern for its strings; the name of the place for its sections or
# class names; or a list with a pattern, for a list of names.
Rule = re.Pattern[str] | str | list[re.Pattern[str]]


def same_rule(names: str, rule: Rule = NOTHING) -> dict[str, Rule]:
    """The same rule for several arguments, whose names are separated by spaces.

    By default they may have any plain value but strings.
    """
    return dict.fromkeys(names.split(), rule)


class Place(NamedTuple):
    """A kind of section in a config, and what it may contain.

    Attributes:
        what: its description, for messages such as "... as a transform".
        registries: the registries of its classes.
        modules: the modules and packages of its classes, separated by spaces, like all lists below.
        names: the allowed classes; empty: all classes of these modules except ``refused``.
        refused: classes that open, import, download or evaluate something, or may never end.
        arguments: the rules of its arguments.
        others: what happens to arguments without a rule. ``'refused'``: they are an error.
            ``'left out'``: they are dropped. ``'taken'``: plain values without strings, and nested
            sections of the same place, are accepted.
        unused: arguments that are dropped.
        emptied: arguments that become None instead of being dropped, since some classes require
            them.
        plain_types: allowed types that are not classes of ``registries``, by argument.
    """

    what: str
    registries: tuple[root.Registry, ...] = ()
    modules: str = ''
    names: str = ''
    refused: str = ''
    arguments: Mapping[str, Rule] = {}
    others: Literal['refused', 'taken', 'left out'] = 'refused'
    unused: str = ''
    emptied: str = ''
    plain_types: Mapping[str, str] = {}


# The `custom_imports` of the recipes for detectors and query-based models, in this order.
IMPORTABLE_MODULES = ('vit_plugin.detection', 'mmdet.models')
DATA_MODULES = """
mmengine.dataset mmpretrain.datasets mmdet.datasets mmseg.datasets vit_plugin.data
vit_plugin.projects
"""
DATASET_ARGUMENTS = dict[str, Rule](pipeline='transform', metainfo='metainfo', classes=[ANY])
PLACES = dict(
    model=Place(
        'part of a model',
        registries=(root.MODELS, root.TASK_UTILS),
        modules="""
        mmpretrain.models.backbones mmpretrain.models.classifiers mmpretrain.models.heads
        mmpretrain.models.losses mmpretrain.models.necks mmpretrain.models.peft
        mmpretrain.models.selfsup mmpretrain.models.tta mmpretrain.models.utils
        mmdet.models.backbones mmdet.models.data_preprocessors mmdet.models.dense_heads
        mmdet.models.detectors mmdet.models.layers mmdet.models.losses mmdet.models.necks
        mmdet.models.roi_heads mmdet.models.seg_heads mmdet.models.task_modules
        mmdet.models.test_time_augs mmseg.models.assigners mmseg.models.backbones
        mmseg.models.data_preprocessor mmseg.models.decode_heads mmseg.models.losses
        mmseg.models.necks mmseg.models.segmentors mmseg.structures.sampler mmcv.cnn.bricks mmcv.ops
        mmengine.model mmengine.utils torch.nn vit_plugin.detection.bands_preprocessor
        vit_plugin.models vit_plugin.projects vit_plugin.tasks
        """,
        refused="""
        ATSSVLFusionHead AppearanceFreeLink CLIPGenerator CameraMotionCompensation Detectron2Wrapper
        GLIP GroundingDINO GroundingDINOHead GroundingHead HuggingFaceClassifier
        KnowledgeDistillationSingleStageDetector LAD MultimodalEncoderDecoder SeqGenerationHead
        SideAdapterCLIPHead VPD VPDDepthHead VQAGenerationHead
        """,
        arguments=same_rule('arch', ARCH)
        | same_rule('config')  # entries of another library's config, not an address
        | same_rule('padding_mode', PADDING)
        | same_rule('conv_type', 'model')
        | same_rule(
            """
            act add_extra_convs add_tokens aggregation anchor_type approximate attention_act
            attention_type
            backbone_arch base bbox_norm_type bbox_reg_loss_type bias block bottleneck_type
            box_format centering classes conv_act conv_bias covariance_type criterion direction
            distance
            distillation ffn_type form format_shape frozen_dtype frozen_exclude frozen_stages
            fusion_mode fusion_types global_block_type global_padding gram_negatives
            graph_conv_type hidden_act
            input_transform interpolate_mode iou_mode kernel kind layer_type log_scale loss_key
            loss_name loss_type match_metric method mlp_norm
            mode model_name model_type numerics operation_order order out_type padding patch_pad
            paths planes pooling_type pos_embed position predict_box_type predict_on psa_type
            qkv_bias qkv_projection_method
            query_scale_type readout_type reconstruction_type reduction refine_type relative
            semantic_fusion
            sizes stats_mode stdc_type style target transform_method upsample_mode variant
            with_cp
            """,
            WORD,
        ),
        others='taken',
        unused='init_cfg pretrained batch_augments augments teacher',
        emptied='train_cfg',
        plain_types=dict(
            pos_embed='learned learned_2d none sincos2d',
            norm_cfg='BN GN IN LN LN2d RMSN SyncBN',
            stem_norm_cfg='BN GN IN LN2d SyncBN',
            act_cfg='GELU Hardswish Identity LeakyReLU Mish QuickGELU ReLU SiLU Tanh',
            same_up_trans='conv',
            nms='nms nms_match soft_nms',
            dqs_cfg='nms',
            dw_cfg='DW GF',
            roi_layer='DeformRoIPool ModulatedDeformRoIPool RoIAlign RoIPool SimpleRoIAlign',
            adapt_cfg='dilation offset',
            upsample_cfg='bicubic',
        ),
    ),
    transform=Place(
        'transform',
        registries=(root.TRANSFORMS,),
        modules="""
        mmcv.transforms mmpretrain.datasets.transforms mmdet.datasets.transforms
        mmseg.datasets.transforms vit_plugin.data vit_plugin.projects functools
        """,
        refused="""
        Albu AlbuKeypoint Albumentations BEiTMaskGenerator CleanCaption ImageAug InferencerLoader
        InstaBoost LoadMultipleRSImageFromFile LoadProposals LoadSingleRSImageFromFile
        LoadTextAnnotations MinIoURandomCrop OFAAddObjects RandomSamplingNegPos
        torchvision/ConvertImageDtype torchvision/Lambda
        """,
        arguments=same_rule('backend decode_backend imdecode_backend', BACKEND)
        | same_rule('resize_type', 'transform')
        | same_rule(
            """
            box_type color_format color_type crop_type default_meta_keys direction edge
            flip_direction input_key input_keys interpolation keys magnitude_key magnitude_std
            meta_keys mode padding_mode policies second_interpolation test_pad_mode
            """,
            WORD,
        ),
        others='taken',
    ),
    # Prediction uses only the classes and the pipeline of a data set.
    dataset_description=Place(
        'data set',
        registries=(root.DATASETS,),
        modules=DATA_MODULES,
        arguments=DATASET_ARGUMENTS | same_rule('dataset', 'dataset_description'),
        others='left out',
    ),
    loader_description=Place(
        'data loader', arguments=same_rule('dataset', 'dataset_description'), others='left out'
    ),
    dataset=Place(
        'data set',
        registries=(root.DATASETS,),
        modules=DATA_MODULES,
        names="""
        BaseDataset CustomDataset ImageNet ImageNet21k MultiLabelDataset Caltech101 CUB FGVCAircraft
        Food101 OxfordIIITPet Places205 SUN397 VOC BaseDetDataset CocoDataset CocoPanopticDataset
        DeepFashionDataset LVISV05Dataset LVISV1Dataset Objects365V1Dataset Objects365V2Dataset
        VOCDataset WIDERFaceDataset XMLDataset ADE20KDataset BDD100KDataset BaseSegDataset
        COCOStuffDataset ChaseDB1Dataset CityscapesDataset DRIVEDataset DarkZurichDataset HRFDataset
        ISPRSDataset LIPDataset LoveDADataset NYUDataset NightDrivingDataset PascalContextDataset
        PascalContextDataset59 PascalVOCDataset PotsdamDataset STAREDataset iSAIDDataset
        ClassBalancedDataset ConcatDataset KFoldDataset MultiImageMixDataset RepeatDataset Digits
        DepthMaps VolumeSlices stratified_subset
        """,
        arguments=DATASET_ARGUMENTS
        | same_rule('dataset datasets', 'dataset')
        | same_rule('data_root sub_data_root', FOLDER)
        | same_rule('data_prefix ann_subdir img_subdir', NO_PARENT)
        | same_rule('ann_file image_set_path', LISTING)
        | same_rule('depth_map_suffix extensions ignore_keys img_suffix seg_map_suffix split', WORD)
        | same_rule(
            """
            backend_args file_client_args filter_cfg fold fraction ignore_index indices lazy_init
            max_refetch num_splits oversample_thr reduce_zero_label rest return_classes seed
            serialize_data test_mode times use_label_map val_fraction verify_meta with_label
            """
        ),
    ),
    metainfo=Place('fact of the data', arguments=same_rule('classes', [ANY]), others='taken'),
    loader=Place(
        'part of a data loader',
        arguments=dict(
            dataset='dataset', sampler='sampler', batch_sampler='sampler', collate_fn='collate'
        )
        | same_rule(
            """
            batch_size disable_subprocess_warning drop_last num_batch_per_epoch num_workers
            persistent_workers pin_memory prefetch_factor timeout
            """
        ),
        unused='worker_init_fn',
    ),
    sampler=Place(
        'sampler',
        registries=(root.DATA_SAMPLERS,),
        modules='mmengine.dataset mmpretrain.datasets mmdet.datasets vit_plugin.data',
        names="""
        AspectRatioBatchSampler ClassAwareSampler DefaultSampler InfiniteSampler RepeatAugSampler
        SequentialSampler
        """,
        others='taken',
    ),
    collate=Place(
        'function',
        registries=(root.FUNCTIONS,),
        modules='mmengine.dataset',
        names='default_collate pseudo_collate',
    ),
    metric=Place(
        'metric',
        registries=(root.METRICS, root.EVALUATOR),
        modules="""
        mmengine.evaluator mmpretrain.evaluation mmdet.evaluation mmseg.evaluation
        vit_plugin.projects vit_plugin.detection.coco_metric
        """,
        names="""
        Accuracy AveragePrecision ConfusionMatrix Evaluator MultiLabelMetric RegressionMetric
        SingleLabelMetric VOCAveragePrecision VOCMultiLabelMetric CocoMetric CocoPanopticMetric
        FasterCocoMetric LVISMetric VOCMetric DepthMetric IoUMetric SurfaceMetric
        """,
        arguments=same_rule('metrics', 'metric')
        | same_rule('ann_file', LISTING)
        | same_rule('seg_prefix', NO_PARENT)
        | same_rule(
            """
            absent average collect_device crop_type depth_metrics eval_mode iou_metrics items metric
            metric_items mode prefix
            """,
            WORD,
        )
        | same_rule(
            """
            backend_args beta classwise depth_scale_factor difficult_as_positive file_client_args
            ignore_background ignore_index iou_thrs max_depth_eval min_depth_eval nan_to_num nproc
            num_classes proposal_nums scale_ranges sort_categories spacing thr thrs tolerance topk
            use_mp_eval
            """
        ),
        # Results go where --out says.
        unused='collect_dir format_only out_file_path outfile_prefix output_dir',
    ),
    loop=Place(
        'loop',
        registries=(root.LOOPS,),
        modules='mmengine.runner vit_plugin.inference.sliced_loops',
        names='SlicedTestLoop SlicedValLoop TestLoop ValLoop',
        arguments=same_rule('fp16 side'),
    ),
    visualizer=Place(
        'visualizer',
        registries=(root.VISUALIZERS,),
        modules="""
        mmengine.visualization mmpretrain.visualization mmdet.visualization mmseg.visualization
        vit_plugin.projects
        """,
        names='DetLocalVisualizer SegLocalVisualizer UniversalVisualizer Visualizer',
        arguments=same_rule('name', WORD) | same_rule('alpha line_width'),
        unused='vis_backends save_dir image classes palette dataset_name',
    ),
    hook=Place(
        'hook for EMA weights',
        registries=(root.HOOKS,),
        modules='mmengine.hooks mmpretrain.engine vit_plugin.engine',
        names='EMAHook',
        arguments=same_rule('ema_type', 'model') | same_rule('priority', WORD),
        others='taken',
    ),
    environment=Place(
        'setting of the environment',
        arguments=dict[str, Rule](
            mp_cfg='environment',
            dist_cfg='environment',
            backend=re.compile('nccl|gloo'),
            mp_start_method=re.compile('fork|spawn|forkserver'),
        )
        | same_rule('cudnn_benchmark opencv_num_threads resource_limit timeout'),
    ),
    values=Place(
        'plain value',
        arguments=same_rule('group param_dtype recipe reduce_dtype targets', WORD),
        others='taken',
    ),
)

SCOPE_NAME = re.compile('|'.join(SCOPES))
PREDICT = dict[str, Rule](
    model='model',
    data_preprocessor='model',
    default_scope=SCOPE_NAME,
    optimize=NOTHING,
    test_dataloader='loader_description',
    test_cfg='loop',
)
TEST = (
    PREDICT
    | same_rule('lora randomness sharding', 'values')
    | same_rule('find_unused_parameters verbose')
    | dict(
        test_dataloader='loader',
        test_evaluator='metric',
        tta_model='model',
        tta_pipeline='transform',
        visualizer='visualizer',
        custom_hooks='hook',
        env_cfg='environment',
        log_level=WORD,
    )
)
SETTINGS_TO_PROBE = (
    TEST
    | same_rule('train_dataloader val_dataloader', 'loader')
    | dict(val_evaluator='metric', val_cfg='loop')
)
# The settings of a checkpoint's config that each use needs: to start a training from its model,
# to predict, to test, and to probe its features.
USES = {
    use: Place('setting', arguments=settings, others='left out')
    for use, settings in dict(
        start=same_rule('model', 'model') | same_rule('default_scope', SCOPE_NAME),
        predict=PREDICT,
        test=TEST,
        probe=SETTINGS_TO_PROBE,
    ).items()
}
