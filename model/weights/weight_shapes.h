#ifndef SFMAMBA_MODEL_WEIGHTS_WEIGHT_SHAPES_H_
#define SFMAMBA_MODEL_WEIGHTS_WEIGHT_SHAPES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// What the names and shapes of a dense model's tensors say of its
// configuration; empty where they say nothing. Whether all tensors fit
// together is for the loader of the model.
struct WeightShapes {
  std::optional<int> num_classes;  // Without the background.
  std::optional<int> segmentation_channels;

  // Set together, for a detector. As in DetectorConfig.
  std::optional<int> box_stages, box_convs, box_fcs, mask_convs;
  std::optional<bool> masks, class_agnostic_boxes, class_agnostic_masks;
  std::optional<int> channels, fc_width;
  std::optional<int> anchor_ratios;  // How many.
  std::optional<int> box_roi_size;
};

// INVALID_ARGUMENT naming a tensor of impossible shape.
absl::StatusOr<WeightShapes> ReadWeightShapes(
    const std::map<std::string, TensorView>& tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_WEIGHT_SHAPES_H_
