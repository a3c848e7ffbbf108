#ifndef SFMAMBA_SERVER_API_VISION_DESCRIBE_MODEL_H_
#define SFMAMBA_SERVER_API_VISION_DESCRIBE_MODEL_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/repository/model_repository.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::api {

// Fills `model` with the current state of a model version. Includes the classes
// only if `with_classes` is true.
void ToProto(const repository::ModelVersion& version, bool with_classes,
             v1::Model* model);

// Fills a page with the elements of `all` after `page_token`. A page token is
// the name of the last version on the previous page. Returns INVALID_ARGUMENT
// with reason INVALID_FIELD if the token is not a version name or if page_size
// is negative.
absl::Status FillPage(
    const v1::ListModelsRequest& request,
    const std::vector<std::shared_ptr<repository::ModelVersion>>& all,
    v1::ListModelsResponse* response);

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_VISION_DESCRIBE_MODEL_H_
