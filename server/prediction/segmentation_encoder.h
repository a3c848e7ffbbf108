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

// Returns the number of bytes of one class index in a map of `classes` classes.
int IndexBytes(int classes);

// Estimates how long it takes to encode a map of size `map`.
absl::Duration SegmentationEncodingCost(const v1::SegmentParams& params,
                                        const image::PictureSize& map);

// Creates the encoder of a class map with the encoding that `params` selects.
// `map` contains either a class map or logits. If it contains logits, the
// encoder first computes the class map in the size `frame.seen`. `params` and
// `model` must outlive the encoder.
std::unique_ptr<AnswerEncoder> MakeSegmentationEncoder(
    const v1::SegmentParams& params, const repository::ModelDirectory& model,
    model::Segmentation map, const image::PictureFrame& frame);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SEGMENTATION_ENCODER_H_
