#ifndef SFMAMBA_MODEL_DETECTOR_CONFIG_H_
#define SFMAMBA_MODEL_DETECTOR_CONFIG_H_

#include <array>
#include <vector>

namespace sfmamba::model {

// The configuration of a two-stage detector on a feature pyramid. The defaults
// describe Cascade Mask R-CNN, see docs/heads.md. Validate() in model/config.h
// checks the values.
struct DetectorConfig {
  // The following fields must match the shapes of the checkpoint's tensors.
  int box_stages = 3;   // 3 for Cascade, else 1.
  int box_convs = 4;    // 3x3 convolutions with BatchNorm in each box head.
  int box_fcs = 1;      // Hidden linear layers in each box head.
  bool masks = true;    // False for Faster R-CNN.
  int mask_convs = 4;   // 3x3 convolutions in each mask head.
  int channels = 256;   // Channels of the pyramid, the RPN and the heads.
  int fc_width = 1024;  // Outputs of the box heads' hidden layers.
  // Whether each region has only one box, or only one mask, for all classes
  // together. If false, it has one for each class.
  bool class_agnostic_boxes = false;
  bool class_agnostic_masks = false;

  // The anchors, that is, the boxes from which proposals are predicted.
  float anchor_scale = 8;  // The side of the square anchor, in strides.
  std::vector<float> anchor_ratios = {0.5f, 1.0f, 2.0f};  // Height / width.

  // The region proposals.
  int rpn_candidates = 1000;  // Per level, before suppression ("nms_pre").
  float rpn_iou_threshold = 0.7f;
  int proposals = 1000;  // Per image, after suppression.

  // The regions that the heads read. A region whose side is less than twice
  // `finest_scale` is read from the pyramid's finest level.
  float finest_scale = 56;  // In pixels.
  int box_roi_size = 7, mask_roi_size = 14;
  // The standard deviations of dx, dy, dw and dh, for each box stage. The
  // predicted deltas of a stage are multiplied by them.
  std::vector<std::array<float, 4>> box_stds = {
      {0.1f, 0.1f, 0.2f, 0.2f},
      {0.05f, 0.05f, 0.1f, 0.1f},
      {0.033f, 0.033f, 0.067f, 0.067f}};

  // The detections that are returned.
  float score_threshold = 0.05f;
  float nms_iou_threshold = 0.5f;
  int max_detections = 100;
  float mask_threshold = 0.5f;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_DETECTOR_CONFIG_H_
