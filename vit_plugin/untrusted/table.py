"""What the config in a checkpoint may name: a table of places, classes and arguments.

Everything else is refused. Numbers, booleans and None are harmless as any argument, since none of
these classes opens, imports or downloads anything for one. Strings are accepted only for the
argument names below, each with a pattern for its values: in the classes of these modules, none of
these names is a file, an address, a module or an expression.

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
FOLDER = re.compile(r'(?!.*://).*')
INSIDE = re.compile(r'(?!.*://)(?!(.*[/\\])?\.\.([/\\]|$)).*')  # a path inside that folder
LISTING = re.compile(rf'({INSIDE.pattern}\.(txt|csv|json))?')
PATHS = (FOLDER, INSIDE, LISTING)  # patterns for paths; a number would be a file descriptor
PADDING = re.compile('zeros?|circular|reflect|replicate')  # other values would be looked up by name
BACKEND = re.compile('cv2|pillow|turbojpeg|tifffile|numpy|nifti|local|disk')

# A pattern for a string; the place of a nested section, or of a class name; a list of patterns for
# lists of names.
Rule = re.Pattern[str] | str | list[re.Pattern[str]]


def each(names: str, rule: Rule = NOTHING) -> dict[str, Rule]:
    """One rule for several arguments."""
    return dict.fromkeys(names.split(), rule)


class Place(NamedTuple):
    """A place in a config.

    Attributes:
        what: its description for messages.
        registries: the registries of its classes.
        modules: the modules of its classes.
        names: the allowed classes; empty: all of these modules except ``refused``.
        refused: classes that open, import, download or evaluate something, or may never end.
        arguments: the rules of its arguments.
        others: what happens to other arguments. Those that are accepted are plain values, or nested
            sections of the same kind.
        unused: arguments that are dropped.
        emptied: arguments that are set to None, since some classes require them.
        words: allowed types that no registry has, by argument.
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
    words: Mapping[str, str] = {}


# Imports of the recipes for detectors and query-based models, in this order.
IMPORTED = ('vit_plugin.detection', 'mmdet.models')
DATA_MODULES = """
mmengine.dataset mmpretrain.datasets mmdet.datasets mmseg.datasets vit_plugin.data
vit_plugin.projects
"""
OF_A_DATASET = dict[str, Rule](pipeline='transform', metainfo='metainfo', classes=[ANY])
PLACES = dict(
    model=Place(
        'part of a model',
        (root.MODELS, root.TASK_UTILS),
        """
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
        arguments=each('arch', ARCH)
        | each('config')  # entries of another library's config, not an address
        | each('padding_mode', PADDING)
        | each('conv_type', 'model')
        | each(
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
        words=dict(
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
        (root.TRANSFORMS,),
        """
        mmcv.transforms mmpretrain.datasets.transforms mmdet.datasets.transforms
        mmseg.datasets.transforms vit_plugin.data vit_plugin.projects functools
        """,
        refused="""
        Albu AlbuKeypoint Albumentations BEiTMaskGenerator CleanCaption ImageAug InferencerLoader
        InstaBoost LoadMultipleRSImageFromFile LoadProposals LoadSingleRSImageFromFile
        LoadTextAnnotations MinIoURandomCrop OFAAddObjects RandomSamplingNegPos
        torchvision/ConvertImageDtype torchvision/Lambda
        """,
        arguments=each('backend decode_backend imdecode_backend', BACKEND)
        | each('resize_type', 'transform')
        | each(
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
    described=Place(
        'data set',
        (root.DATASETS,),
        DATA_MODULES,
        arguments=OF_A_DATASET | each('dataset', 'described'),
        others='left out',
    ),
    description=Place('data loader', arguments=each('dataset', 'described'), others='left out'),
    dataset=Place(
        'data set',
        (root.DATASETS,),
        DATA_MODULES,
        """
        BaseDataset CustomDataset ImageNet ImageNet21k MultiLabelDataset Caltech101 CUB FGVCAircraft
        Food101 OxfordIIITPet Places205 SUN397 VOC BaseDetDataset CocoDataset CocoPanopticDataset
        DeepFashionDataset LVISV05Dataset LVISV1Dataset Objects365V1Dataset Objects365V2Dataset
        VOCDataset WIDERFaceDataset XMLDataset ADE20KDataset BDD100KDataset BaseSegDataset
        COCOStuffDataset ChaseDB1Dataset CityscapesDataset DRIVEDataset DarkZurichDataset HRFDataset
        ISPRSDataset LIPDataset LoveDADataset NightDrivingDataset PascalContextDataset
        PascalContextDataset59 PascalVOCDataset PotsdamDataset STAREDataset iSAIDDataset
        ClassBalancedDataset ConcatDataset KFoldDataset MultiImageMixDataset RepeatDataset Digits
        DepthMaps VolumeSlices stratified_subset
        """,
        arguments=OF_A_DATASET
        | each('dataset datasets', 'dataset')
        | each('data_root sub_data_root', FOLDER)
        | each('data_prefix ann_subdir img_subdir', INSIDE)
        | each('ann_file image_set_path', LISTING)
        | each('extensions ignore_keys img_suffix seg_map_suffix split', WORD)
        | each(
            """
            backend_args file_client_args filter_cfg fold fraction ignore_index indices lazy_init
            max_refetch num_splits oversample_thr reduce_zero_label rest return_classes seed
            serialize_data test_mode times use_label_map val_fraction verify_meta with_label
            """
        ),
    ),
    metainfo=Place('fact of the data', arguments=each('classes', [ANY]), others='taken'),
    loader=Place(
        'part of a data loader',
        arguments=dict(
            dataset='dataset', sampler='sampler', batch_sampler='sampler', collate_fn='collate'
        )
        | each(
            """
            batch_size disable_subprocess_warning drop_last num_batch_per_epoch num_workers
            persistent_workers pin_memory prefetch_factor timeout
            """
        ),
        unused='worker_init_fn',
    ),
    sampler=Place(
        'sampler',
        (root.DATA_SAMPLERS,),
        'mmengine.dataset mmpretrain.datasets mmdet.datasets vit_plugin.data',
        """
        AspectRatioBatchSampler ClassAwareSampler DefaultSampler InfiniteSampler RepeatAugSampler
        SequentialSampler
        """,
        others='taken',
    ),
    collate=Place(
        'function', (root.FUNCTIONS,), 'mmengine.dataset', 'default_collate pseudo_collate'
    ),
    metric=Place(
        'metric',
        (root.METRICS, root.EVALUATOR),
        """
        mmengine.evaluator mmpretrain.evaluation mmdet.evaluation mmseg.evaluation
        vit_plugin.projects vit_plugin.detection.coco_metric
        """,
        """
        Accuracy AveragePrecision ConfusionMatrix Evaluator MultiLabelMetric RegressionMetric
        SingleLabelMetric VOCAveragePrecision VOCMultiLabelMetric CocoMetric CocoPanopticMetric
        FasterCocoMetric LVISMetric VOCMetric DepthMetric IoUMetric SurfaceMetric
        """,
        arguments=each('metrics', 'metric')
        | each('ann_file', LISTING)
        | each('seg_prefix', INSIDE)
        | each(
            """
            absent average collect_device crop_type depth_metrics eval_mode iou_metrics items metric
            metric_items mode prefix
            """,
            WORD,
        )
        | each(
            """
            backend_args beta classwise depth_scale_factor difficult_as_positive file_client_args
            ignore_background ignore_index iou_thrs max_depth_eval min_depth_eval nan_to_num nproc
            num_classes proposal_nums scale_ranges sort_categories spacing thr thrs tolerance topk
            use_mp_eval
            """
        ),
        # --out sets the place of results.
        unused='collect_dir format_only out_file_path outfile_prefix output_dir',
    ),
    loop=Place(
        'loop',
        (root.LOOPS,),
        'mmengine.runner vit_plugin.inference.sliced_loops',
        'SlicedTestLoop SlicedValLoop TestLoop ValLoop',
        arguments=each('fp16 side'),
    ),
    visualizer=Place(
        'visualizer',
        (root.VISUALIZERS,),
        """
        mmengine.visualization mmpretrain.visualization mmdet.visualization mmseg.visualization
        vit_plugin.projects
        """,
        'DetLocalVisualizer SegLocalVisualizer UniversalVisualizer Visualizer',
        arguments=each('name', WORD) | each('alpha line_width'),
        unused='vis_backends save_dir image classes palette dataset_name',
    ),
    hook=Place(
        'average of the weights',
        (root.HOOKS,),
        'mmengine.hooks mmpretrain.engine vit_plugin.engine',
        'EMAHook',
        arguments=each('ema_type', 'model') | each('priority', WORD),
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
        | each('cudnn_benchmark opencv_num_threads resource_limit timeout'),
    ),
    values=Place(
        'plain value',
        arguments=each('group param_dtype recipe reduce_dtype targets', WORD),
        others='taken',
    ),
)

SCOPE_NAME = re.compile('|'.join(SCOPES))
PREDICT = dict[str, Rule](
    model='model',
    data_preprocessor='model',
    default_scope=SCOPE_NAME,
    optimize=NOTHING,
    test_dataloader='description',
    test_cfg='loop',
)
TEST = (
    PREDICT
    | each('lora randomness sharding', 'values')
    | each('find_unused_parameters verbose')
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
    | each('train_dataloader val_dataloader', 'loader')
    | dict(val_evaluator='metric', val_cfg='loop')
)
# The settings of a checkpoint's config that each use needs.
USES = {
    use: Place('setting', arguments=settings, others='left out')
    for use, settings in dict(
        start=each('model', 'model') | each('default_scope', SCOPE_NAME),
        predict=PREDICT,
        test=TEST,
        probe=SETTINGS_TO_PROBE,
    ).items()
}
