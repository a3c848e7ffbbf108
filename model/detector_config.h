#ifndef SFMAMBA_MODEL_DETECTOR_CONFIG_H_
#define SFMAMBA_MODEL_DETECTOR_CONFIG_H_

#include <array>
#include <vector>

namespace sfmamba::model {

// A two-stage detector on a feature pyramid. The defaults are Cascade Mask
// R-CNN's of docs/heads.md; plain values, checked by Validate() of
// model/config.h.
struct DetectorConfig {
  // Shapes, as the checkpoint has them.
  int box_stages = 3;   // 3: the cascade; 1: Mask and Faster R-CNN.
  int box_convs = 4;    // 3x3 convolutions with BatchNorm, a box head.
  int box_fcs = 1;      // Hidden linear layers, a box head.
  bool masks = true;    // False: Faster R-CNN.
  int mask_convs = 4;   // 3x3 convolutions, a mask head.
  int channels = 256;   // Of the pyramid, the RPN and the heads.
  int fc_width = 1024;  // Of the box heads' hidden layers.
  bool class_agnostic_boxes = false;  // One box a region, not one a class.
  bool class_agnostic_masks = false;

  // Anchors.
  float anchor_scale = 8;  // Side of the square anchor, in strides.
  std::vector<float> anchor_ratios = {0.5f, 1.0f, 2.0f};  // Height / width.

  // Region proposals.
  int rpn_candidates = 1000;  // A level, before suppression ("nms_pre").
  float rpn_iou_threshold = 0.7f;
  int proposals = 1000;  // An image, after it.

  // Regions.
  float finest_scale = 56;  // Pixels; twice that side is the first of level 1.
  int box_roi_size = 7, mask_roi_size = 14;
  // Deviations of dx, dy, dw, dh, a box stage.
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
