#ifndef SFMAMBA_SERVER_PREDICTION_CONVERT_SEGMENTATION_H_
#define SFMAMBA_SERVER_PREDICTION_CONVERT_SEGMENTATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/result.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Fills `result` with the map by `params`, which must be valid for as many
// classes as there are labels. Areas and run lengths are of the classes that
// occur, areas with the largest first. INTERNAL if the map cannot be encoded.
absl::Status ToProto(const model::Segmentation& segmentation,
                     const v1::SegmentParams& params,
                     const std::vector<std::string>& labels,
                     v1::SegmentResult* result);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_CONVERT_SEGMENTATION_H_
