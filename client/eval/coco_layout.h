#ifndef SFMAMBA_CLIENT_EVAL_COCO_LAYOUT_H_
#define SFMAMBA_CLIENT_EVAL_COCO_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sfmamba::client {

// Where a dataset has its annotations in COCO's format.
struct CocoLayout {
  std::string annotations;            // A path. Empty: there are none.
  std::vector<std::string> pictures;  // Folders that may have the pictures, the
                                      // likeliest first.
};

// Finds the annotations in `folder` as COCO and labelling tools lay them out.
// Names tell the parts of a dataset: a validation part comes before a test
// part, and both before any other. tools/coco/layouts.py finds the same files
// for training, and tests/testdata/coco tests both.
// INVALID_ARGUMENT names two files if nothing decides between them.
absl::StatusOr<CocoLayout> FindCocoLayout(const std::string& folder);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_LAYOUT_H_
