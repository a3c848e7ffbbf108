#include "server/prediction/task_handler.h"

#include "server/prediction/classification.h"
#include "server/prediction/detection.h"
#include "server/prediction/segmentation.h"

namespace sfmamba::prediction {
namespace {

struct MakeHandler {
  using Handler = std::unique_ptr<const TaskHandler>;

  Handler operator()(const ClassifyParams& params) const {
    return std::make_unique<ClassificationHandler>(params);
  }
  Handler operator()(const DetectParams& params) const {
    return std::make_unique<DetectionHandler>(params);
  }
  Handler operator()(const SegmentParams& params) const {
    return std::make_unique<SegmentationHandler>(params);
  }
};

}  // namespace

std::unique_ptr<const TaskHandler> MakeTaskHandler(const TaskParams& params) {
  return std::visit(MakeHandler(), params);
}

}  // namespace sfmamba::prediction
