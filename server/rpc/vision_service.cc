#include "server/rpc/vision_service.h"

#include <utility>

#include "server/observability/request_record.h"
#include "server/rpc/describe_model.h"
#include "server/rpc/proto_prediction.h"
#include "server/rpc/stream/predict_stream.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

using observability::Method;
using observability::RequestRecord;

VisionService::VisionService(prediction::TransportEnvironment environment,
                             absl::Duration send_timeout)
    : PredictionService(kName, std::move(environment), send_timeout) {
  Add("Classify", &VisionService::Ask<Classification, Method::kClassify>);
  Add("Detect", &VisionService::Ask<Detection, Method::kDetect>);
  Add("Segment", &VisionService::Ask<Segmentation, Method::kSegment>);
  Add("GetModel", &VisionService::GetModel);
  Add("ListModels", &VisionService::ListModels);
  AddStream("StreamPredict", [this](grpc::CallbackServerContext* context) {
    return StreamPredict(context);
  });
}

template <typename Asked, Method kMethod>
Reactor* VisionService::Ask(const RawCall& call) {
  return Predict<Asked>(kMethod, call);
}

StreamReactor* VisionService::StreamPredict(
    grpc::CallbackServerContext* context) {
  return Open(context, PredictStream::Options(), PredictStream(env_, *context));
}

Reactor* VisionService::GetModel(const RawCall& call) {
  return Answer<v1::GetModelRequest, v1::Model>(
      Method::kGetModel, call,
      [&](RequestRecord* record) { return CheckReader(call, record); },
      [this](const auto& asked, v1::Model* model, RequestRecord* record) {
        const auto version = env_.repository.Find(asked.name(), "name");
        if (!version.ok()) return version.status();
        record->set_model((*version)->name(), (*version)->metrics());
        ToProto(**version, /*with_classes=*/true, model);
        return absl::OkStatus();
      });
}

Reactor* VisionService::ListModels(const RawCall& call) {
  return Answer<v1::ListModelsRequest, v1::ListModelsResponse>(
      Method::kListModels, call,
      [&](RequestRecord* record) {
        record->set_no_model();
        return CheckReader(call, record);
      },
      [this](const auto& asked, auto* page, RequestRecord*) {
        return FillPage(asked, env_.repository.List(), page);
      });
}

}  // namespace sfmamba::rpc
