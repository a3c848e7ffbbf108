#ifndef SFMAMBA_CLIENT_EVAL_COCO_SEGMENTATION_H_
#define SFMAMBA_CLIENT_EVAL_COCO_SEGMENTATION_H_

#include <optional>

#include "absl/status/statusor.h"
#include "client/eval/coco_json.h"
#include "client/eval/run_lengths.h"

namespace sfmamba::client {

struct CocoSegmentation {
  std::optional<RunLengths> mask;  // Unset: the annotation has none.
  int short_polygons = 0;  // Polygons of 1 or 2 points, which the mask lacks.
};

// Reads the polygons or run lengths of an annotation's "segmentation". Run
// lengths may be compressed. The mask is unset if "segmentation" is missing,
// {}, [] or [[]]. `width` and `height` are the picture's, or 0 if unknown. If
// they are unknown, run lengths have the size that they state, and polygons
// give no mask. Returns INVALID_ARGUMENT with the name of the entry that is
// malformed.
absl::StatusOr<CocoSegmentation> ReadSegmentation(const CocoJson& annotation,
                                                  int width, int height);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_SEGMENTATION_H_
