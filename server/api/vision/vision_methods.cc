#include "server/api/vision/vision_methods.h"

#include "absl/status/status.h"
#include "server/api/vision/describe_model.h"
#include "server/api/vision/predict.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::api {
namespace {

using call::About;
using call::AnswerAtOnce;
using observability::Method;
using prediction::TransportEnvironment;
using security::Scope;

absl::Status GetModel(const TransportEnvironment& environment,
                      const v1::GetModelRequest& request, v1::Model* model,
                      observability::RequestRecord* record) {
  const auto version = environment.repository.Find(request.name(), "name");
  if (!version.ok()) return version.status();
  record->set_model((*version)->name(), (*version)->metrics());
  ToProto(**version, /*with_classes=*/true, model);
  return absl::OkStatus();
}

absl::Status ListModels(const TransportEnvironment& environment,
                        const v1::ListModelsRequest& request,
                        v1::ListModelsResponse* page,
                        observability::RequestRecord*) {
  return FillPage(request, environment.repository.List(), page);
}

}  // namespace

std::vector<call::Method> VisionMethods() {
  return {
      {"sfmamba.v1.VisionService/Classify",
       "POST,PUT /v1/{model=models/**}:classify", Scope::kInfer,
       Method::kClassify, Predict<v1::ClassifyRequest, v1::ClassifyResponse>},
      {"sfmamba.v1.VisionService/Detect",
       "POST,PUT /v1/{model=models/**}:detect", Scope::kInfer, Method::kDetect,
       Predict<v1::DetectRequest, v1::DetectResponse>},
      {"sfmamba.v1.VisionService/Segment",
       "POST,PUT /v1/{model=models/**}:segment", Scope::kInfer,
       Method::kSegment, Predict<v1::SegmentRequest, v1::SegmentResponse>},
      {"sfmamba.v1.VisionService/StreamPredict", "", Scope::kInfer,
       Method::kStreamPredict, nullptr},
      {"sfmamba.v1.VisionService/GetModel", "GET /v1/{name=models/**}",
       Scope::kRead, Method::kGetModel,
       AnswerAtOnce<v1::GetModelRequest, v1::Model>(About::kModel, GetModel)},
      {"sfmamba.v1.VisionService/ListModels", "GET /v1/models", Scope::kRead,
       Method::kListModels,
       AnswerAtOnce<v1::ListModelsRequest, v1::ListModelsResponse>(
           About::kServer, ListModels)},
  };
}

}  // namespace sfmamba::api
