#ifndef SFMAMBA_MODEL_WEIGHTS_WEIGHT_SHAPES_H_
#define SFMAMBA_MODEL_WEIGHTS_WEIGHT_SHAPES_H_

#include <array>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// The part of a dense model's configuration that follows from the names and
// shapes of its tensors. A field that does not follow is empty. The tensors'
// consistency is checked only when the model is loaded.
struct WeightShapes {
  std::optional<int> num_classes;  // Without the background.
  std::optional<int> segmentation_channels;

  // Fields of DetectorConfig, which are set only for detectors.
  std::optional<int> box_stages, box_convs, box_fcs, mask_convs;
  std::optional<bool> masks, class_agnostic_boxes, class_agnostic_masks;
  std::optional<int> channels, fc_width;
  std::optional<int> anchor_ratios;  // The number of ratios.
  std::optional<int> box_roi_size;
};

// Reads the shapes. If a tensor has an impossible shape, returns
// INVALID_ARGUMENT with its name.
absl::StatusOr<WeightShapes> ReadWeightShapes(
    const std::map<std::string, TensorView>& tensors);

// The part of a hybrid classifier's configuration that follows from the names
// and shapes of its tensors. No tensor depends on the size of windows, on the
// number of attention heads, or on whether auxiliary tokens are exchanged
// (BackboneConfig::swap). So these fields do not follow.
struct ClassifierShapes {
  int dim = 0, in_dim = 0;  // See BackboneConfig.
  std::array<int, 4> depths = {};
  bool layer_scale = false;
  bool attention = false;
  bool learnable_tokens = false;
  int num_classes = 0;
};

// Reads the shapes. If a tensor is missing or has an impossible shape, returns
// INVALID_ARGUMENT with its name.
absl::StatusOr<ClassifierShapes> ReadClassifierShapes(
    const std::map<std::string, TensorView>& tensors);

// The part of a MambaOut classifier's configuration that follows from its
// tensors. See model::MambaOutConfig.
struct MambaOutShapes {
  std::array<int, 4> widths = {}, hidden = {}, conv = {};
  std::array<int, 4> depths = {};
  bool rw = false;
  int num_classes = 0;
};

// Returns whether the keys belong to MambaOut.
bool IsMambaOut(const std::map<std::string, TensorView>& tensors);

// Reads the shapes. If a tensor is missing or has an impossible shape, returns
// INVALID_ARGUMENT with its name.
absl::StatusOr<MambaOutShapes> ReadMambaOutShapes(
    const std::map<std::string, TensorView>& tensors);

// Returns whether the keys belong to EfficientViM.
bool IsEfficientVim(const std::map<std::string, TensorView>& tensors);

// Returns the number of classes of an EfficientViM. Returns the errors of
// ReadMambaOutShapes().
absl::StatusOr<int> ReadEfficientVimClasses(
    const std::map<std::string, TensorView>& tensors);

// The part of a VMamba classifier's configuration that follows from its
// tensors. See model::BackboneConfig.
struct VMambaShapes {
  int dim = 0, ssm_ratio = 0;
  std::array<int, 4> depths = {};
  int num_classes = 0;
};

// Returns whether the keys belong to any version of VMamba.
bool IsVMamba(const std::map<std::string, TensorView>& tensors);

// Reads the shapes. If a tensor is missing or has an impossible shape, returns
// INVALID_ARGUMENT with its name. Also returns INVALID_ARGUMENT if the model
// does not belong to VMamba's second version, or if its selective scan has more
// than one state per channel.
absl::StatusOr<VMambaShapes> ReadVMambaShapes(
    const std::map<std::string, TensorView>& tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_WEIGHT_SHAPES_H_
