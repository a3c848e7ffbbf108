#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_NAME_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::repository {

// The family and the variant in a model's name.
struct NamedModel {
  bool is_mamba_vision = false;
  bool is_sf_mamba = false;
  // A variant's name behind its family's prefix, such as "l3_512_21k"; "" if
  // the name has none.
  std::string row;
};

// Reads names such as "mamba_vision_L3_512_21k", "MambaVision-T-1K",
// "mambavision_tiny_1k" and "sf_mamba_t". A name of neither family, or of both,
// says nothing.
NamedModel ReadModelName(absl::string_view name);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_NAME_H_
