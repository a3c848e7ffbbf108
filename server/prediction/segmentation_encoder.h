#ifndef SFMAMBA_SERVER_PREDICTION_SEGMENTATION_ENCODER_H_
#define SFMAMBA_SERVER_PREDICTION_SEGMENTATION_ENCODER_H_

#include <memory>

#include "absl/time/time.h"
#include "model/result.h"
#include "server/image/image_input.h"
#include "server/prediction/task_handler.h"
#include "server/repository/model_directory.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// The bytes of a class's index in a map.
int IndexBytes(int classes);

// How long encoding a map of a size is expected to take.
absl::Duration SegmentationEncodingCost(const v1::SegmentParams& params,
                                        const image::PictureSize& map);

// Encodes a class map as `params` ask. If `map` has logits, the encoder first
// computes the class map, which gets the size `frame.seen`. `params` and
// `model` outlive the encoder.
std::unique_ptr<AnswerEncoder> MakeSegmentationEncoder(
    const v1::SegmentParams& params, const repository::ModelDirectory& model,
    model::Segmentation map, const image::PictureFrame& frame);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SEGMENTATION_ENCODER_H_
