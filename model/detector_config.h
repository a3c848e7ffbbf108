#ifndef SFMAMBA_MODEL_DETECTOR_CONFIG_H_
#define SFMAMBA_MODEL_DETECTOR_CONFIG_H_

#include <array>
#include <vector>

namespace sfmamba::model {

// The configuration of a two-stage detector on a feature pyramid. The defaults
// belong to Cascade Mask R-CNN as described in docs/heads.md. Validate() of
// model/config.h checks the values.
struct DetectorConfig {
  // The checkpoint's shapes, which these fields must match.
  int box_stages = 3;   // 3 for Cascade, 1 for Mask and Faster R-CNN.
  int box_convs = 4;    // 3x3 convolutions with BatchNorm in each box head.
  int box_fcs = 1;      // Hidden linear layers in each box head.
  bool masks = true;    // False for Faster R-CNN.
  int mask_convs = 4;   // 3x3 convolutions in each mask head.
  int channels = 256;   // Channels of the pyramid, the RPN and the heads.
  int fc_width = 1024;  // Outputs of the box heads' hidden layers.
  // Whether a region has one box (or mask) for all classes, not one per class.
  bool class_agnostic_boxes = false;
  bool class_agnostic_masks = false;

  // Anchors.
  float anchor_scale = 8;  // The side of the square anchor, in strides.
  std::vector<float> anchor_ratios = {0.5f, 1.0f, 2.0f};  // Height / width.

  // Region proposals.
  int rpn_candidates = 1000;  // Per level, before suppression ("nms_pre").
  float rpn_iou_threshold = 0.7f;
  int proposals = 1000;  // Per image, after suppression.

  // Regions. The finest level of the pyramid is read for regions whose side is
  // less than twice `finest_scale`.
  float finest_scale = 56;  // In pixels.
  int box_roi_size = 7, mask_roi_size = 14;
  // The standard deviations of dx, dy, dw and dh for each box stage. A stage's
  // deltas are multiplied by them.
  std::vector<std::array<float, 4>> box_stds = {
      {0.1f, 0.1f, 0.2f, 0.2f},
      {0.05f, 0.05f, 0.1f, 0.1f},
      {0.033f, 0.033f, 0.067f, 0.067f}};

  // Detections.
  float score_threshold = 0.05f;
  float nms_iou_threshold = 0.5f;
  int max_detections = 100;
  float mask_threshold = 0.5f;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_DETECTOR_CONFIG_H_
