#include "server/vision_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "grpcpp/support/message_allocator.h"
#include "server/convert.h"
#include "server/error.h"

namespace sfmamba {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

// Request and response on one arena, freed together when the call is over.
class ClassifyMessages final
    : public grpc::MessageHolder<v1::ClassifyRequest, v1::ClassifyResponse> {
 public:
  ClassifyMessages() {
    set_request(
        google::protobuf::Arena::CreateMessage<v1::ClassifyRequest>(&arena_));
    set_response(
        google::protobuf::Arena::CreateMessage<v1::ClassifyResponse>(&arena_));
  }
  void Release() override { delete this; }

 private:
  google::protobuf::Arena arena_;
};

class ClassifyAllocator final
    : public grpc::MessageAllocator<v1::ClassifyRequest, v1::ClassifyResponse> {
 public:
  grpc::MessageHolder<v1::ClassifyRequest, v1::ClassifyResponse>*
  AllocateMessages() override {
    return new ClassifyMessages;
  }
};

// Ends a stream before its first message.
class RefusedStream final
    : public grpc::ServerBidiReactor<v1::StreamPredictRequest,
                                     v1::StreamPredictResponse> {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

absl::Status NotSupported(absl::string_view what) {
  ErrorDetail detail;
  detail.reason = "NOT_SUPPORTED";
  return MakeError(absl::StatusCode::kUnimplemented,
                   absl::StrCat(what, " is not supported"), std::move(detail));
}

v1::Model::State ToProto(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return v1::Model::LOADING;
    case ModelState::kReady:
      return v1::Model::READY;
    case ModelState::kUnloading:
      return v1::Model::UNLOADING;
    case ModelState::kUnavailable:
      return v1::Model::UNAVAILABLE;
  }
  return v1::Model::STATE_UNSPECIFIED;
}

void ToProto(const ModelConfig& config, v1::InputSpec* input) {
  auto* size = input->add_buckets();
  size->set_height(config.image_size);
  size->set_width(config.image_size);
  input->mutable_mean()->Add(config.mean.begin(), config.mean.end());
  input->mutable_std()->Add(config.std.begin(), config.std.end());
  input->set_resize(config.resize == Resize::kStretch ? "stretch"
                                                      : "center_crop");
  input->set_channel_order("RGB");
}

void ToProto(const ModelVersion& version, bool with_classes, v1::Model* model) {
  model->set_name(version.name());
  model->set_task(v1::Model::CLASSIFICATION);
  model->set_state(ToProto(version.state()));
  model->set_state_reason(version.state_reason());
  const absl::StatusOr<std::shared_ptr<LoadedModel>> loaded = version.Loaded();
  if (!loaded.ok()) return;
  const ModelDirectory& directory = (*loaded)->directory;
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
absl::Status FillPage(const v1::ListModelsRequest& request,
                      const std::vector<std::shared_ptr<ModelVersion>>& all,
                      v1::ListModelsResponse* response) {
  if (request.page_size() < 0) {
    return InvalidField("page_size", absl::StrCat("got ", request.page_size(),
                                                  ", expected 0 or more"));
  }
  auto from = all.begin();
  if (!request.page_token().empty()) {
    from =
        std::find_if(all.begin(), all.end(), [&request](const auto& version) {
          return version->name() == request.page_token();
        });
    if (from == all.end()) {
      return InvalidField("page_token",
                          "expected the next_page_token of an earlier answer");
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

VisionService::VisionService(CallEnvironment environment)
    : env_(std::move(environment)),
      allocator_(std::make_unique<ClassifyAllocator>()) {
  SetMessageAllocatorFor_Classify(allocator_.get());
}

absl::Status VisionService::CheckServing() const {
  if (!draining_.load()) return absl::OkStatus();
  ErrorDetail detail;
  detail.reason = "DRAINING";
  detail.retry_after = absl::ZeroDuration();
  return MakeError(absl::StatusCode::kUnavailable, "the server is stopping",
                   std::move(detail));
}

grpc::ServerUnaryReactor* VisionService::Classify(
    grpc::CallbackServerContext* context, const v1::ClassifyRequest* request,
    v1::ClassifyResponse* response) {
  auto* call = new ClassifyCall(env_, context, request, response);
  call->Start(CheckServing());
  return call;
}

absl::Status VisionService::TaskMismatch(absl::string_view model,
                                         absl::string_view task,
                                         CallRecord* record) const {
  const absl::Status serving = CheckServing();
  if (!serving.ok()) return serving;
  if (model.empty()) return NotSupported(task);
  const auto version = env_.repository.Find(model, "model");
  if (!version.ok()) return version.status();
  record->set_model(**version);
  ErrorDetail detail;
  detail.reason = "TASK_MISMATCH";
  detail.metadata = {{"model", (*version)->name()},
                     {"got", std::string(task)},
                     {"expected", "classification"}};
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat((*version)->name(), ": got ", task,
                                ", expected classification"),
                   std::move(detail));
}

grpc::ServerUnaryReactor* VisionService::Detect(
    grpc::CallbackServerContext* context, const v1::DetectRequest* request,
    v1::DetectResponse* response) {
  CallRecord record(Method::kDetect, *request, context, &env_.metrics,
                    &env_.log);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(
      record.Finish(TaskMismatch(request->model(), "detection", &record)));
  return reactor;
}

grpc::ServerUnaryReactor* VisionService::Segment(
    grpc::CallbackServerContext* context, const v1::SegmentRequest* request,
    v1::SegmentResponse* response) {
  CallRecord record(Method::kSegment, *request, context, &env_.metrics,
                    &env_.log);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(
      record.Finish(TaskMismatch(request->model(), "segmentation", &record)));
  return reactor;
}

grpc::ServerBidiReactor<v1::StreamPredictRequest, v1::StreamPredictResponse>*
VisionService::StreamPredict(grpc::CallbackServerContext* context) {
  CallRecord record(Method::kStreamPredict, v1::StreamPredictRequest(), context,
                    &env_.metrics, &env_.log);
  record.set_no_model();
  return new RefusedStream(record.Finish(NotSupported("StreamPredict")));
}

grpc::ServerUnaryReactor* VisionService::GetModel(
    grpc::CallbackServerContext* context, const v1::GetModelRequest* request,
    v1::Model* response) {
  CallRecord record(Method::kGetModel, *request, context, &env_.metrics,
                    &env_.log);
  absl::Status status = CheckServing();
  if (status.ok()) {
    const auto version = env_.repository.Find(request->name(), "name");
    status = version.status();
    if (status.ok()) {
      record.set_model(**version);
      ToProto(**version, /*with_classes=*/true, response);
    }
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(record.Finish(status));
  return reactor;
}

grpc::ServerUnaryReactor* VisionService::ListModels(
    grpc::CallbackServerContext* context, const v1::ListModelsRequest* request,
    v1::ListModelsResponse* response) {
  CallRecord record(Method::kListModels, *request, context, &env_.metrics,
                    &env_.log);
  record.set_no_model();
  absl::Status status = CheckServing();
  if (status.ok())
    status = FillPage(*request, env_.repository.List(), response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(record.Finish(status));
  return reactor;
}

}  // namespace sfmamba
