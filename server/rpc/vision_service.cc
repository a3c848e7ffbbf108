#include "server/rpc/vision_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"
#include "server/observability/request_record.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/predict_call.h"

namespace sfmamba::rpc {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

v1::Model::State ToProto(observability::ModelState state) {
  switch (state) {
    case observability::ModelState::kLoading:
      return v1::Model::LOADING;
    case observability::ModelState::kReady:
      return v1::Model::READY;
    case observability::ModelState::kUnavailable:
      return v1::Model::UNAVAILABLE;
  }
  return v1::Model::STATE_UNSPECIFIED;
}

v1::Model::Task ToProto(model::VisionTask task) {
  switch (task) {
    case model::VisionTask::kClassification:
      return v1::Model::CLASSIFICATION;
    case model::VisionTask::kDetection:
      return v1::Model::DETECTION;
    case model::VisionTask::kSegmentation:
      return v1::Model::SEGMENTATION;
  }
  return v1::Model::TASK_UNSPECIFIED;
}

const char* ResizeName(model::Resize resize) {
  switch (resize) {
    case model::Resize::kCenterCrop:
      return "center_crop";
    case model::Resize::kStretch:
      return "stretch";
    case model::Resize::kKeepRatio:
      return "keep_ratio";
  }
  return "";
}

void ToProto(const model::ModelConfig& config, v1::InputSpec* input) {
  const bool keep_ratio = config.resize == model::Resize::kKeepRatio;
  auto* size = input->add_buckets();
  size->set_height(keep_ratio ? config.short_side : config.image_size);
  size->set_width(keep_ratio ? config.long_side : config.image_size);
  input->mutable_mean()->Add(config.mean.begin(), config.mean.end());
  input->mutable_std()->Add(config.std.begin(), config.std.end());
  input->set_resize(ResizeName(config.resize));
  input->set_channel_order("RGB");
}

void ToProto(const repository::ModelVersion& version, bool with_classes,
             v1::Model* model) {
  model->set_name(version.name());
  if (version.task().has_value()) model->set_task(ToProto(*version.task()));
  model->set_state(ToProto(version.state()));
  model->set_state_reason(version.state_reason());
  const absl::StatusOr<std::shared_ptr<repository::LoadedModel>> loaded =
      version.Loaded();
  if (!loaded.ok()) return;
  const repository::ModelDirectory& directory = (*loaded)->directory;
  ToProto(directory.config, model->mutable_input());
  model->set_max_batch_size(directory.batch.max_batch_size);
  model->set_weights_size_bytes(directory.weights_size);
  model->set_content_sha256(directory.weights_sha256);
  model->set_class_count(directory.labels.size());
  const absl::Duration since_epoch = (*loaded)->load_time - absl::UnixEpoch();
  model->mutable_load_time()->set_seconds(absl::ToInt64Seconds(since_epoch));
  if (!with_classes) return;
  for (size_t i = 0; i < directory.labels.size(); ++i) {
    v1::ClassInfo* info = model->add_classes();
    info->set_class_id(i);
    info->set_label(directory.labels[i]);
  }
}

// The models after `page_token`, a name that an earlier page ended with.
absl::Status FillPage(
    const v1::ListModelsRequest& request,
    const std::vector<std::shared_ptr<repository::ModelVersion>>& all,
    v1::ListModelsResponse* response) {
  if (request.page_size() < 0) {
    return server::InvalidField(
        "page_size",
        absl::StrCat("got ", request.page_size(), ", expected 0 or more"));
  }
  auto from = all.begin();
  if (!request.page_token().empty()) {
    from =
        std::find_if(all.begin(), all.end(), [&request](const auto& version) {
          return version->name() == request.page_token();
        });
    if (from == all.end()) {
      return server::InvalidField(
          "page_token", "expected the next_page_token of an earlier answer");
    }
    ++from;
  }
  const int size = request.page_size() == 0
                       ? kDefaultPageSize
                       : std::min(request.page_size(), kMaxPageSize);
  const auto to = from + std::min<ptrdiff_t>(size, all.end() - from);
  for (auto it = from; it != to; ++it) {
    ToProto(**it, /*with_classes=*/false, response->add_models());
  }
  if (to != all.end()) response->set_next_page_token((*(to - 1))->name());
  return absl::OkStatus();
}

}  // namespace

VisionService::VisionService(prediction::PredictionEnvironment environment,
                             absl::Duration send_timeout)
    : env_(std::move(environment)), sends_(send_timeout, env_.clock) {}

void VisionService::StartDraining() {
  draining_.store(true);
  TickStreams();
}

void VisionService::TickStreams() {
  // Unlocked: a stream may end in its turn.
  std::vector<std::shared_ptr<StreamCall>> streams;
  {
    absl::MutexLock lock(&mu_);
    std::vector<std::weak_ptr<StreamCall>> living;
    for (std::weak_ptr<StreamCall>& stream : streams_) {
      auto shared = stream.lock();
      if (shared == nullptr) continue;
      streams.push_back(std::move(shared));
      living.push_back(std::move(stream));
    }
    streams_ = std::move(living);
  }
  for (const auto& stream : streams) stream->Tick(draining_.load());
}

void VisionService::EndUnreadCalls() {
  TickStreams();
  const int calls = sends_.CancelLate();
  if (calls == 0) return;
  env_.log.Warning(observability::LogModule::kRequests,
                   "answers were not read: their calls are ended",
                   {{"calls", calls}});
}

absl::Status VisionService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

observability::RequestRecord VisionService::Record(
    observability::Method method, int64_t message_bytes,
    const grpc::CallbackServerContext& context) const {
  return observability::RequestRecord(method, message_bytes, context.peer(),
                                      TraceparentOf(context), &env_.metrics,
                                      &env_.log);
}

template <typename Call>
grpc::ServerUnaryReactor* VisionService::Predict(
    observability::Method method, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  if (!request->Valid()) {
    // The caller has cancelled before its message came: there is no request.
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::CANCELLED);
    return reactor;
  }
  // gRPC made the request for this call and does not read it again; nothing
  // else would free it before the call ends.
  auto* call =
      new Call(method, env_, context, const_cast<grpc::ByteBuffer*>(request),
               response, &sends_);
  call->Run(CheckServing());
  return call;
}

grpc::ServerUnaryReactor* VisionService::Classify(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Predict<ClassifyCall>(observability::Method::kClassify, context,
                               request, response);
}

grpc::ServerUnaryReactor* VisionService::Detect(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Predict<DetectCall>(observability::Method::kDetect, context, request,
                             response);
}

grpc::ServerUnaryReactor* VisionService::Segment(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Predict<SegmentCall>(observability::Method::kSegment, context, request,
                              response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
VisionService::StreamPredict(grpc::CallbackServerContext* context) {
  const auto stream = std::make_shared<StreamCall>(
      env_, context, &sends_, [this] { return CheckServing(); });
  {
    absl::MutexLock lock(&mu_);
    streams_.push_back(stream);
  }
  stream->Start();
  return stream.get();
}

grpc::ServerUnaryReactor* VisionService::GetModel(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  auto record =
      Record(observability::Method::kGetModel, request->Length(), *context);
  v1::GetModelRequest asked;
  v1::Model model;
  absl::Status status = CheckServing();
  if (status.ok()) status = Parse(*request, &asked);
  if (status.ok()) {
    const auto version = env_.repository.Find(asked.name(), "name");
    status = version.status();
    if (status.ok()) {
      record.set_model((*version)->name(), (*version)->metrics());
      ToProto(**version, /*with_classes=*/true, &model);
      Serialize(model, response);
    }
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(EndCall(record.Finish(status), context));
  return reactor;
}

grpc::ServerUnaryReactor* VisionService::ListModels(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  auto record =
      Record(observability::Method::kListModels, request->Length(), *context);
  record.set_no_model();
  v1::ListModelsRequest asked;
  v1::ListModelsResponse page;
  absl::Status status = CheckServing();
  if (status.ok()) status = Parse(*request, &asked);
  if (status.ok()) status = FillPage(asked, env_.repository.List(), &page);
  if (status.ok()) Serialize(page, response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(EndCall(record.Finish(status), context));
  return reactor;
}

}  // namespace sfmamba::rpc
