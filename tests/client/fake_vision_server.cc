#include "tests/client/fake_vision_server.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/ext/health_check_service_server_builder_option.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "tests/testing/patience.h"

namespace sfmamba::client {

class FakeVisionServer::Service final
    : public v1::VisionService::CallbackService {
 public:
  Service(FakeVisionServer::Classify classify, FakeVisionServer::Detect detect,
          FakeVisionServer::Segment segment)
      : classify_(std::move(classify)),
        detect_(std::move(detect)),
        segment_(std::move(segment)) {}

  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const v1::ClassifyRequest* request,
                                     v1::ClassifyResponse* response) override {
    return Answer(classify_, context, *request, response);
  }
  grpc::ServerUnaryReactor* Detect(grpc::CallbackServerContext* context,
                                   const v1::DetectRequest* request,
                                   v1::DetectResponse* response) override {
    return Answer(detect_, context, *request, response);
  }
  grpc::ServerUnaryReactor* Segment(grpc::CallbackServerContext* context,
                                    const v1::SegmentRequest* request,
                                    v1::SegmentResponse* response) override {
    return Answer(segment_, context, *request, response);
  }

  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest* request,
                                     v1::Model* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::MutexLock lock(&mu);
    for (const v1::Model& model : models) {
      const bool is_version = absl::StartsWith(
          model.name(), absl::StrCat(request->name(), "/versions/"));
      // Like the real server, this method does not choose a model by its task.
      const bool is_only = request->name().empty() && models.size() == 1;
      if (is_only || is_version || request->name() == model.name()) {
        *response = model;
        reactor->Finish(grpc::Status::OK);
        return reactor;
      }
    }
    reactor->Finish(FakeError(grpc::StatusCode::NOT_FOUND, "no such model",
                              "MODEL_NOT_FOUND"));
    return reactor;
  }

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* page) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::MutexLock lock(&mu);
    int index = 0;
    (void)absl::SimpleAtoi(request->page_token(), &index);
    if (index < models.size()) *page->add_models() = models[index];
    if (index + 1 < models.size()) {
      page->set_next_page_token(absl::StrCat(index + 1));
    }
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  void Await(const int* counter, int count) {
    absl::MutexLock lock(&mu);
    const auto reached = [=] { return *counter >= count; };
    TimeLimit limit(absl::StrCat("call ", count));
    mu.Await(absl::Condition(&reached));
  }

  absl::Mutex mu;
  bool hanging ABSL_GUARDED_BY(mu) = false;
  int begun ABSL_GUARDED_BY(mu) = 0;
  std::set<std::string> peers ABSL_GUARDED_BY(mu);
  // The traceparent of the last call.
  std::string traceparent ABSL_GUARDED_BY(mu);
  int cancelled ABSL_GUARDED_BY(mu) = 0;
  std::vector<v1::Model> models ABSL_GUARDED_BY(mu);

 private:
  // A call that ends only when the client cancels it.
  class Hanging final : public grpc::ServerUnaryReactor {
   public:
    explicit Hanging(Service* service) : service_(service) {}
    void OnCancel() override {
      {
        absl::MutexLock lock(&service_->mu);
        ++service_->cancelled;
      }
      Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override { delete this; }

   private:
    Service* const service_;
  };

  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(const Handler<Request, Response>& handler,
                                   grpc::CallbackServerContext* context,
                                   const Request& request, Response* response) {
    bool hang;
    {
      absl::MutexLock lock(&mu);
      ++begun;
      peers.insert(context->peer());
      const auto& metadata = context->client_metadata();
      const auto trace = metadata.find("traceparent");
      traceparent = trace == metadata.end() ? ""
                                            : std::string(trace->second.data(),
                                                          trace->second.size());
      hang = hanging;
    }
    if (hang) return new Hanging(this);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(handler == nullptr
                        ? grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "")
                        : handler(request, response));
    return reactor;
  }

  const FakeVisionServer::Classify classify_;
  const FakeVisionServer::Detect detect_;
  const FakeVisionServer::Segment segment_;
};

FakeVisionServer::FakeVisionServer(Classify classify, Detect detect,
                                   Segment segment, int port)
    : service_(std::make_unique<Service>(std::move(classify), std::move(detect),
                                         std::move(segment))) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port),
                           grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  SetHealthy(true);
}

FakeVisionServer::~FakeVisionServer() {
  server_->Shutdown(std::chrono::system_clock::now());
}

std::string FakeVisionServer::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void FakeVisionServer::SetHealthy(bool healthy) {
  server_->GetHealthCheckService()->SetServingStatus("sfmamba.v1.VisionService",
                                                     healthy);
}

void FakeVisionServer::SetModels(std::vector<v1::Model> models) {
  absl::MutexLock lock(&service_->mu);
  service_->models = std::move(models);
}

void FakeVisionServer::Hang() {
  absl::MutexLock lock(&service_->mu);
  service_->hanging = true;
}

int FakeVisionServer::call_count() const {
  absl::MutexLock lock(&service_->mu);
  return service_->begun;
}

std::string FakeVisionServer::traceparent() const {
  absl::MutexLock lock(&service_->mu);
  return service_->traceparent;
}

int FakeVisionServer::connection_count() const {
  absl::MutexLock lock(&service_->mu);
  return service_->peers.size();
}

void FakeVisionServer::AwaitCallCount(int count) const {
  service_->Await(&service_->begun, count);
}

void FakeVisionServer::AwaitCancelledCount(int count) const {
  service_->Await(&service_->cancelled, count);
}

grpc::Status FakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason, const std::string& field,
                       int retry_delay_seconds) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("sfmamba.serving");
  (*info.mutable_metadata())["model"] = "m";
  status.add_details()->PackFrom(info);
  if (!field.empty()) {
    google::rpc::BadRequest bad_request;
    bad_request.add_field_violations()->set_field(field);
    status.add_details()->PackFrom(bad_request);
  }
  if (retry_delay_seconds > 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_delay_seconds);
    status.add_details()->PackFrom(retry);
  }
  return grpc::Status(code, message, status.SerializeAsString());
}

grpc::Status AnswerCup(const v1::ClassifyRequest& request,
                       v1::ClassifyResponse* response) {
  response->set_model("models/m/versions/1");
  for (int i = 0; i < request.images_size(); ++i) {
    v1::Category* category = response->add_results()->add_categories();
    category->set_label("cup");
    category->set_score(0.75);
  }
  v1::Timing* timing = response->mutable_timing();
  timing->set_batch_size(4);
  timing->mutable_inference()->set_nanos(2'500'000);
  timing->mutable_total()->set_seconds(1);
  timing->set_device("cpu");
  return grpc::Status::OK;
}

v1::Model FakeModel(const std::string& name) {
  v1::Model model;
  model.set_name(name);
  model.set_task(v1::Model::CLASSIFICATION);
  model.set_state(v1::Model::READY);
  v1::InputSpec::Size* size = model.mutable_input()->add_buckets();
  size->set_height(8);
  size->set_width(6);
  for (const char* label : {"cup", "chair"}) {
    v1::ClassInfo* info = model.add_classes();
    info->set_class_id(model.classes_size() - 1);
    info->set_label(label);
  }
  model.set_class_count(2);
  model.set_max_batch_size(16);
  return model;
}

}  // namespace sfmamba::client
