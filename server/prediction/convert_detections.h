#ifndef SFMAMBA_SERVER_PREDICTION_CONVERT_DETECTIONS_H_
#define SFMAMBA_SERVER_PREDICTION_CONVERT_DETECTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/prediction_options.h"
#include "model/result.h"
#include "server/image/image_input.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// What valid parameters ask of the model, but for masks.
model::DetectionOptions ToDetectionOptions(const v1::DetectParams& params);

// Fills `result` with the detections of what the model saw, in pixels of the
// whole picture, and with its size. A mask for each with an encoding, without
// it none; a PNG drops what a mask sets outside its box rounded outwards.
// `labels` has one entry for each class. INTERNAL if a mask cannot be encoded.
absl::Status ToProto(const model::Detections& detections,
                     const image::PictureFrame& frame,
                     v1::DetectParams::MaskEncoding encoding,
                     const std::vector<std::string>& labels,
                     v1::DetectResult* result);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_CONVERT_DETECTIONS_H_
