from vit_plugin.engine.validation_record import in_per_cent


def test_metrics_are_in_per_cent():
    assert in_per_cent(
        {
            'coco/bbox_mAP': 0.123,
            'coco/bbox_mAP_s': -1.0,
            'coco/bbox_mAP_copypaste': '0.1 0.2',
            'accuracy/top1': 50.0,
            'mIoU': 7,
            'pascal_voc/mAP': 1.0,
        }
    ) == {'coco/bbox_mAP': 12.3, 'accuracy/top1': 50, 'mIoU': 7, 'pascal_voc/mAP': 100}
