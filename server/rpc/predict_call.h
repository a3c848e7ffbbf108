#ifndef SFMAMBA_SERVER_RPC_PREDICT_CALL_H_
#define SFMAMBA_SERVER_RPC_PREDICT_CALL_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "google/protobuf/message.h"
#include "google/protobuf/repeated_field.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "model/config.h"
#include "server/base/client_set.h"
#include "server/base/thread_pool.h"
#include "server/batching/batch_task.h"
#include "server/image/image_input.h"
#include "server/image/memory_budget.h"
#include "server/prediction/request_validation.h"
#include "server/repository/model_repository.h"
#include "server/rpc/call_record.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// What calls work with. All of it outlives them.
struct CallEnvironment {
  repository::ModelRepository& repository;
  server::ThreadPool& decode_pool;
  // For what follows the model: of its own, so that answers do not queue behind
  // pictures to be decoded.
  server::ThreadPool& finish_pool;
  image::MemoryBudget& decode_memory;
  observability::Metrics& metrics;
  observability::Logger& log;
  // Who has been told, in the log, that the default deadline applies to it.
  server::ClientSet& without_deadline;
  prediction::RequestLimits limits;
  int64_t max_response_bytes = 64 << 20;
  absl::Duration default_deadline = absl::Seconds(30);
  absl::Duration max_deadline = absl::Seconds(120);
  std::function<absl::Time()> clock = base::SteadyNow;  // Of deadlines.
};

// One call that asks a model about images: validates, reserves room, sends each
// image through the decode pool and the model's executor, and answers when the
// last is done. No thread ever waits for another. What differs between the RPCs
// is in the hooks.
//
// Start() runs on a gRPC thread, Prepare() on the decode pool, Postprocess() on
// the finish pool; each image is in one of them at a time. The thread that ends
// the last image finishes the call, after which the object deletes itself.
class PredictCall : public grpc::ServerUnaryReactor {
 public:
  // `serving`: the error to answer at once, or OK.
  void Start(const absl::Status& serving);

  void OnCancel() override;
  void OnDone() override { delete this; }

 protected:
  // What all requests have; parts of `message`, which outlives the call.
  struct RequestParts {
    const google::protobuf::Message& message;
    const std::string& model;
    const google::protobuf::RepeatedPtrField<v1::Image>& images;
    const v1::RequestOptions& options;
    const std::string& request_id;
  };

  PredictCall(observability::Method method, model::VisionTask task,
              const CallEnvironment& environment,
              grpc::CallbackServerContext* context,
              const RequestParts& request);

  // Of the model that was asked. Only from the hooks below.
  const repository::ModelDirectory& model() const { return model_->directory; }

 private:
  // ---- Hooks ----

  // INVALID_ARGUMENT unless the parameters fit the model.
  virtual absl::Status CheckParams() const = 0;
  // Bytes that the model's answer to an image may take, about.
  virtual int64_t AnswerBytes(const prediction::ImageFacts& image) const = 0;
  // Puts into the task what is asked of the model besides its image.
  virtual void FillTask(batching::BatchTask* task) const = 0;
  // Prepares the response: model and request id set, a result for each image.
  virtual void StartResponse(const std::string& model, int results) = 0;
  // Fills the i-th result. Called by several threads, for different images.
  // INTERNAL if it cannot be encoded.
  virtual absl::Status FillResult(int i, const model::Result& result,
                                  const image::PictureFrame& frame) = 0;
  virtual google::rpc::Status* MutableError(int i) = 0;  // Of the i-th result.
  virtual v1::Timing* MutableTiming() = 0;
  virtual const google::protobuf::Message& ResultAt(int i) const = 0;
  virtual const google::protobuf::Message& response() const = 0;
  // What a client may change to get a smaller response.
  virtual absl::string_view SmallerResponse() const = 0;

  // ---- The flow ----

  // One image. Used by the thread that it is on.
  struct Item {
    prediction::ImageFacts facts;
    batching::Reservation input_room;   // Until it is submitted.
    batching::Reservation answer_room;  // Until it has ended.
    absl::Status status;
    image::PictureFrame frame;
    absl::Duration decode;
    absl::Duration preprocess;
    absl::Duration postprocess;
    batching::BatchInfo batch;
  };

  // Finds the model, checks the request and reserves room for its images. Fills
  // the status of images that allow_partial_results lets fail alone.
  absl::Status Admit();
  absl::Status CheckTask() const;
  absl::Status CheckImages();
  absl::Status Reserve();

  void Schedule(int i);
  void Prepare(int i);
  void Submit(int i, image::ImageBuffer input);
  void Postprocess(int i, absl::StatusOr<model::Result> result,
                   const batching::BatchInfo& batch);
  // The image's last step; may delete this.
  void EndItem(int i, absl::Status status);

  // Ends the call before any image was sent on its way.
  void FinishEarly(const absl::Status& status);
  void FinishAll();
  // What the call as a whole ends with, once each image has.
  absl::Status Outcome() const;
  void FillErrors();
  void FillTiming();

  // CANCELLED or DEADLINE_EXCEEDED if so; `deadline` is due.
  absl::Status CheckAlive(absl::string_view stage, absl::Time deadline) const;
  // RESOURCE_EXHAUSTED if a response of `bytes` would not be sent.
  absl::Status CheckSize(int64_t bytes) const;
  void CountItem(const absl::Status& status);

  const model::VisionTask task_;
  const CallEnvironment& env_;
  const RequestParts request_;
  const bool partial_;
  CallRecord record_;
  const absl::Time deadline_;  // Of the call; SteadyNow().
  const absl::Time
      queue_deadline_;  // To be in a batch by; not after deadline_.

  // Fixed by Admit().
  std::shared_ptr<repository::ModelVersion> version_;
  std::shared_ptr<repository::LoadedModel> model_;

  std::vector<Item> items_;
  // Items not ended. The thread that takes it to zero may read all of them.
  std::atomic<int> pending_{0};
  std::atomic<int64_t> result_bytes_{0};  // Of the results filled so far.
  std::atomic<bool> client_gone_{false};
  // Tells the batcher to drop what is left: the client has gone, an image of an
  // atomic request has failed, or the response is too large already.
  const std::shared_ptr<std::atomic<bool>> dropped_ =
      std::make_shared<std::atomic<bool>>(false);
};

// A PredictCall whose messages name alike what all requests and responses have.
template <typename Request, typename Response>
class TypedPredictCall : public PredictCall {
 protected:
  TypedPredictCall(observability::Method method, model::VisionTask task,
                   const CallEnvironment& environment,
                   grpc::CallbackServerContext* context, const Request* request,
                   Response* response)
      : PredictCall(method, task, environment, context,
                    {*request, request->model(), request->images(),
                     request->options(), request->request_id()}),
        request_(*request),
        response_(*response) {}

  const auto& params() const { return request_.params(); }
  auto* result(int i) { return response_.mutable_results(i); }

 private:
  void StartResponse(const std::string& model, int results) final {
    response_.set_request_id(request_.request_id());
    response_.set_model(model);
    for (int i = 0; i < results; ++i) response_.add_results();
  }
  google::rpc::Status* MutableError(int i) final {
    return result(i)->mutable_error();
  }
  v1::Timing* MutableTiming() final { return response_.mutable_timing(); }
  const google::protobuf::Message& ResultAt(int i) const final {
    return response_.results(i);
  }
  const google::protobuf::Message& response() const final { return response_; }

  const Request& request_;
  Response& response_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PREDICT_CALL_H_
