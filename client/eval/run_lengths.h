#ifndef SFMAMBA_CLIENT_EVAL_RUN_LENGTHS_H_
#define SFMAMBA_CLIENT_EVAL_RUN_LENGTHS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::client {

// A mask as COCO's run lengths. The pixels of a picture are read column by
// column. The counts alternate between unset and set pixels, beginning with
// unset pixels. All functions return the same results as pycocotools.
struct RunLengths {
  int width = 0, height = 0;    // Size of the picture.
  std::vector<int64_t> counts;  // They add up to width * height.

  int64_t Area() const;  // Number of set pixels.
};

// Returns INVALID_ARGUMENT if a count is negative or if the counts do not add
// up to the number of pixels.
absl::StatusOr<RunLengths> FromCounts(std::vector<int64_t> counts, int width,
                                      int height);
// Decodes COCO's compressed string. Returns INVALID_ARGUMENT if it is
// malformed.
absl::StatusOr<RunLengths> FromCompressed(absl::string_view counts, int width,
                                          int height);

// Returns the pixels inside the polygon x0, y0, x1, y1, ..., which has at least
// three points. Source: pycocotools, maskApi.c, rleFrPoly().
RunLengths FromPolygon(const std::vector<double>& polygon, int width,
                       int height);

// Returns the pixels that are in at least one of two masks of equal size.
RunLengths Union(const RunLengths& a, const RunLengths& b);
int64_t IntersectionArea(const RunLengths& a, const RunLengths& b);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_RUN_LENGTHS_H_
