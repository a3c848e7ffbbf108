#ifndef SFMAMBA_CLIENT_EVAL_COCO_LAYOUT_H_
#define SFMAMBA_CLIENT_EVAL_COCO_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sfmamba::client {

// The place of a dataset's annotations in COCO's format.
struct CocoLayout {
  std::string annotations;  // A path. Empty: none found.
  // Folders that may contain the pictures, the most likely one first.
  std::vector<std::string> pictures;
};

// Finds the annotations in `folder`, in the layouts of COCO and of labelling
// tools. Names of files and folders tell the part of the dataset. A validation
// part is preferred to a test part, and a test part to any other part.
// tools/coco/layouts.py finds the same files for training, and
// tests/testdata/coco tests both. Returns INVALID_ARGUMENT with the names of
// two files if neither is preferred.
absl::StatusOr<CocoLayout> FindCocoLayout(const std::string& folder);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_LAYOUT_H_
