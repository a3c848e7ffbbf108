#ifndef SFMAMBA_SERVER_PREDICTION_CONVERT_CLASSIFICATION_H_
#define SFMAMBA_SERVER_PREDICTION_CONVERT_CLASSIFICATION_H_

#include <string>
#include <vector>

#include "model/result.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Fills `result` with the best categories by `params`, which must be valid for
// as many classes as there are logits. The softmax is over all classes,
// whatever the filter. `labels` has one entry for each class.
void ToProto(const model::Classification& classification,
             const v1::ClassifyParams& params,
             const std::vector<std::string>& labels,
             v1::ClassifyResult* result);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_CONVERT_CLASSIFICATION_H_
