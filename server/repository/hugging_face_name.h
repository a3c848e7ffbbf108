#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_NAME_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::repository {

// The family and the variant found in a model's name.
struct NamedModel {
  bool is_mamba_vision = false;
  bool is_sf_mamba = false;
  // The variant's name without the prefix of the family, such as "l3_512_21k".
  // Empty if the name contains no variant.
  std::string row;
};

// Parses names such as "mamba_vision_L3_512_21k", "MambaVision-T-1K",
// "mambavision_tiny_1k" and "sf_mamba_t". Returns an empty result unless the
// name contains exactly one of the families MambaVision and SF-Mamba.
NamedModel ReadModelName(absl::string_view name);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_NAME_H_
