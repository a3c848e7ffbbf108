#ifndef SFMAMBA_CLIENT_EVAL_RUN_LENGTHS_H_
#define SFMAMBA_CLIENT_EVAL_RUN_LENGTHS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::client {

// A mask as COCO's run lengths: the pixels of a picture are read column by
// column, and the counts alternate between unset and set pixels, beginning with
// unset ones. The results are those of pycocotools.
struct RunLengths {
  int width = 0, height = 0;    // The picture's.
  std::vector<int64_t> counts;  // They add up to width * height.

  int64_t Area() const;  // Pixels that are set.
};

// INVALID_ARGUMENT unless the counts are not negative and add up to the pixels.
absl::StatusOr<RunLengths> FromCounts(std::vector<int64_t> counts, int width,
                                      int height);
// Decodes COCO's compressed string. INVALID_ARGUMENT if it is malformed.
absl::StatusOr<RunLengths> FromCompressed(absl::string_view counts, int width,
                                          int height);

// The pixels inside of a polygon x0, y0, x1, y1, ... of at least three points.
// Source: pycocotools, maskApi.c, rleFrPoly().
RunLengths FromPolygon(const std::vector<double>& polygon, int width,
                       int height);

// The pixels of either mask, or of both. The masks have one size.
RunLengths Union(const RunLengths& a, const RunLengths& b);
int64_t IntersectionArea(const RunLengths& a, const RunLengths& b);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_RUN_LENGTHS_H_
