#ifndef SFMAMBA_CLIENT_EVAL_COCO_SEGMENTATION_H_
#define SFMAMBA_CLIENT_EVAL_COCO_SEGMENTATION_H_

#include <optional>

#include "absl/status/statusor.h"
#include "client/eval/coco_json.h"
#include "client/eval/run_lengths.h"

namespace sfmamba::client {

struct CocoSegmentation {
  std::optional<RunLengths> mask;  // Unset: the annotation has none.
  int short_polygons = 0;          // One or two points; not in the mask.
};

// Reads an annotation's "segmentation": polygons or run lengths, packed or not.
// Missing, {}, [] and [[]] are no mask. `width` and `height` are the picture's;
// 0: unknown, then run lengths have their own size and polygons are no mask.
// INVALID_ARGUMENT names the entry that is anything else.
absl::StatusOr<CocoSegmentation> ReadSegmentation(const CocoJson& annotation,
                                                  int width, int height);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_SEGMENTATION_H_
