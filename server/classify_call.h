#ifndef SFMAMBA_SERVER_CLASSIFY_CALL_H_
#define SFMAMBA_SERVER_CLASSIFY_CALL_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/call_record.h"
#include "server/image_input.h"
#include "server/memory_budget.h"
#include "server/model_repository.h"
#include "server/request_validation.h"
#include "server/thread_pool.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba {

// What calls work with. All of it outlives them.
struct CallEnvironment {
  ModelRepository& repository;
  ThreadPool& decode_pool;
  // For what follows the model: of its own, so that answers do not queue behind
  // pictures to be decoded.
  ThreadPool& finish_pool;
  MemoryBudget& decode_memory;
  Metrics& metrics;
  Logger& log;
  RequestLimits limits;
  absl::Duration default_deadline = absl::Seconds(30);
  absl::Duration max_deadline = absl::Seconds(120);
};

// One Classify call: validates, reserves room, sends each image through the
// decode pool and the model's executor, and answers when the last is done. No
// thread ever waits for another.
//
// Start() runs on a gRPC thread, Prepare() on the decode pool, Postprocess() on
// the finish pool; each image is in one of them at a time. The thread that ends
// the last image finishes the call, after which the object deletes itself.
class ClassifyCall final : public grpc::ServerUnaryReactor {
 public:
  ClassifyCall(const CallEnvironment& environment,
               grpc::CallbackServerContext* context,
               const v1::ClassifyRequest* request,
               v1::ClassifyResponse* response);

  // `serving`: the error to answer at once, or OK.
  void Start(const absl::Status& serving);

  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  // One image. Used by the thread that it is on.
  struct Item {
    ImageFacts facts;
    Reservation reservation;  // Until it is submitted.
    absl::Status status;
    InputTimes times;
    absl::Duration postprocess;
    BatchInfo batch;
  };

  // Finds the model, checks the request and reserves room for its images. Fills
  // the status of images that allow_partial_results lets fail alone.
  absl::Status Admit();
  absl::Status CheckImages();
  absl::Status Reserve();

  void Schedule(int i);
  void Prepare(int i);
  void Submit(int i, ImageBuffer input);
  void Postprocess(int i, absl::StatusOr<Result> result,
                   const BatchInfo& batch);
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
  void CountItem(const absl::Status& status);

  const CallEnvironment& env_;
  const v1::ClassifyRequest& request_;
  v1::ClassifyResponse& response_;
  const bool partial_;
  CallRecord record_;
  const absl::Time deadline_;  // Of the call; SteadyNow().
  const absl::Time
      queue_deadline_;  // To be in a batch by; not after deadline_.

  // Fixed by Admit().
  std::shared_ptr<ModelVersion> version_;
  std::shared_ptr<LoadedModel> model_;

  std::vector<Item> items_;
  // Items not ended. The thread that takes it to zero may read all of them.
  std::atomic<int> pending_{0};
  std::atomic<bool> client_gone_{false};
  // Tells the batcher to drop what is left: the client has gone, or an image of
  // an atomic request has failed.
  const std::shared_ptr<std::atomic<bool>> dropped_ =
      std::make_shared<std::atomic<bool>>(false);
};

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_CLASSIFY_CALL_H_
