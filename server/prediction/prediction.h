#ifndef SFMAMBA_SERVER_PREDICTION_PREDICTION_H_
#define SFMAMBA_SERVER_PREDICTION_PREDICTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "server/batching/batch_task.h"
#include "server/batching/reservation.h"
#include "server/image/image_buffer.h"
#include "server/image/image_input.h"
#include "server/image/image_source.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/answer.h"
#include "server/prediction/expected_costs.h"
#include "server/prediction/image_parts.h"
#include "server/prediction/prediction_request.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/task_handler.h"
#include "server/repository/model_repository.h"
#include "server/security/client_quotas.h"
#include "server/shares/client_set.h"
#include "server/shares/memory_budget.h"
#include "server/threads/fair_pool.h"
#include "server/tracing/request_trace.h"
#include "server/tracing/span.h"
#include "server/tracing/tracer.h"

namespace sfmamba::prediction {

// The services and limits that predictions use. They must outlive the
// predictions.
struct PredictionEnvironment {
  repository::ModelRepository& repository;
  server::FairPool& decode_pool;
  // Limits the images that wait for decode_pool.
  batching::QueueRoom& decode_room;
  // Encodes answers. Answers have their own pool, so that they do not wait
  // behind pictures to be decoded.
  server::FairPool& finish_pool;
  // Limits the images whose answers wait for finish_pool or are being encoded.
  batching::QueueRoom& finish_room;
  // Accounts for the memory of requests.
  server::MemoryBudget& memory;
  // Estimates the duration of work for both pools.
  ExpectedCosts& costs;
  observability::Metrics& metrics;
  observability::Logger& log;
  // The clients that were already logged for sending no deadline.
  server::ClientSet& without_deadline;
  RequestLimits limits;
  int64_t max_response_bytes = 64 << 20;
  absl::Duration default_deadline = absl::Seconds(30);
  absl::Duration max_deadline = absl::Seconds(120);
  std::function<absl::Time()> clock =
      base::SteadyNow;                // The clock of deadlines.
  tracing::Tracer* tracer = nullptr;  // Null if no request is traced.
  // Enforces the quota of each caller. If null, callers have no quota.
  security::ClientQuotas* quotas = nullptr;
};

// Writes a prediction's response in a transport's format. Only calls of
// SetAnswer() may overlap.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // Called first and only once, unless the whole request is refused.
  virtual void Start(const std::string& model, int images) = 0;
  // Called when the prediction no longer reads the request, whose message may
  // then be freed. Called exactly once, before Done(), perhaps while other
  // threads are in SetAnswer().
  virtual void ReleaseRequest() {}
  // Writes the answer to image `i` and returns the answer's size in the
  // message, in bytes. Several threads may call it concurrently for different
  // images.
  virtual int64_t SetAnswer(int i, Answer answer) = 0;
  virtual void SetError(int i, const absl::Status& error) = 0;
  virtual void SetTiming(const v1::Timing& timing) = 0;
  // Returns the size of the whole message in bytes.
  virtual int64_t Bytes() const = 0;
  // Called last and exactly once. If `status` is an error, the transport sends
  // only the error. May destroy the prediction.
  virtual void Done(const absl::Status& status) = 0;
};

// Processes one request of any transport, from admission to the last answer. It
// checks the request and reserves room and memory. Each image then passes
// through the decode pool and the model's executor. Finally, the finish pool
// encodes the answer, or an idle batch thread does if the answer is short. The
// writer's Done() is called exactly once, when the last image has ended. No
// thread waits for another thread.
//
//   Prediction prediction(environment, std::move(request), &writer);
//   prediction.Start(absl::OkStatus());
//
// Call Start() once. Any thread may call Cancel() at any time. After Start(),
// the prediction must live until Done() is called. Until the prediction is
// destroyed, its answers count as memory in use and the request counts as in
// flight. The owner must destroy it when the answers are sent.
class Prediction {
 public:
  // `writer` must outlive the prediction. A prediction with a `parent` is part
  // of the parent's request. If one of the two is dropped, the other is dropped
  // too. `parent` must outlive the prediction.
  Prediction(const PredictionEnvironment& environment,
             PredictionRequest request, ResponseWriter* writer,
             const Prediction* parent = nullptr);

  // Starts the prediction. If `serving` is an error, the request ends
  // immediately with this error. Start() does not block for long, because its
  // checks need no decoding.
  void Start(const absl::Status& serving);

  // Reports that the caller has disconnected or cancelled. Done() is still
  // called.
  void Cancel();

 private:
  // The resources that an image holds in the server. All resources are released
  // when the image ends, and some resources are released earlier.
  struct Admission {
    security::ClientQuotas::Hold quota;
    batching::Reservation decode_room;  // Until decoding starts.
    batching::Reservation input_room;   // Until the input is queued.
    server::MemoryHold input_memory;    // Until the batch has ended.
    server::MemoryHold picture_memory;  // Until all crops have inputs.
    batching::Reservation answer_room;
    batching::Reservation finish_room;  // From the batch's end on.
  };

  // A model input from which parts are cut. The parts are submitted in order,
  // as far as PartCollector::Wanted() allows.
  struct UncutInput {
    image::ImageBuffer image;  // Freed when all parts are submitted.
    int submitted = 0;         // The number of submitted parts.
    // The number of CallCollector() calls since the collector last ran out of
    // work. Only the thread that raises this number from 0 runs the collector.
    // The collector is therefore never run by two threads.
    std::atomic<int> calls{1};
  };

  // One image. Only the thread that processes the image uses it.
  struct Item {
    image::ImageSource source;
    ImageFacts facts;
    Admission admission;
    server::MemoryHold answer_memory;  // Until the answer is sent.
    int64_t answer_bytes = 0;          // The image's part of answer_bytes_.
    std::unique_ptr<PartCollector> collector;  // Set if the image has parts.
    std::unique_ptr<UncutInput>
        uncut;  // Set if parts are cut out of its input.
    std::unique_ptr<AnswerEncoder> encoder;  // Set while encoding the answer.
    image::RgbImage picture;                 // Kept for crops.
    std::optional<v1::DetectResult>
        found;  // The objects with crops to classify.
    std::unique_ptr<ResponseWriter> crops;  // Classifies the crops of `found`.
    bool source_done = false;  // True if `source` is no longer read.
    absl::Status status;
    image::PictureFrame frame;
    absl::Duration decode;
    absl::Duration preprocess;
    absl::Duration postprocess;
    // The run of the image's model input. For an image with parts, this
    // contains the longest inference and the longest queue time of all parts.
    InputRun run;
    std::vector<InputRun> part_runs;  // One entry per part.
    // When the image reached a stage, or InfinitePast() if it did not.
    absl::Time decode_started = absl::InfinitePast();
    absl::Time encode_started = absl::InfinitePast();
    absl::Time ended;  // Set only if the request is traced.
  };
  static bool IsAnswered(const Item& item) { return item.status.ok(); }

  // The duration of each stage of the request, which is that of the slowest
  // image.
  struct Timing {
    absl::Duration decode, preprocess, postprocess, total;
    batching::BatchInfo batch;
  };

  // The obligation to end an image. If this object is destroyed before End(),
  // for example by an exception, the image ends with INTERNAL.
  class OpenItem {
   public:
    OpenItem(Prediction* prediction, int i) : prediction_(prediction), i_(i) {}
    OpenItem(OpenItem&& other) noexcept
        : prediction_(std::exchange(other.prediction_, nullptr)),
          i_(other.i_) {}
    ~OpenItem();

    int index() const { return i_; }
    // Ends the image. If this is the last image, may destroy the prediction.
    void End(absl::Status status) {
      std::exchange(prediction_, nullptr)->EndItem(i_, std::move(status));
    }

   private:
    Prediction* prediction_;  // Null once the image has ended.
    const int i_;
  };

  // Finds the model, reserves the message's memory and runs all checks that
  // need no image.
  absl::Status CheckRequest();
  // Returns the error of an unknown model. The error lists other models only if
  // the caller may read them.
  absl::Status NotFound(const absl::Status& status) const;
  // Admits the request and schedules its images. Ends the request if `checked`
  // is an error.
  void Begin(const absl::Status& checked);
  // Checks the images and reserves room for them. With allow_partial_results,
  // an image that fails gets its own error and the request continues.
  absl::Status Admit();
  absl::Status CheckTask() const;
  // Returns the request's parameters for crops, or null if the request asks for
  // no crops.
  const v1::Crops* crops() const;
  // Finds the model of the crops and checks the parameters for crops.
  absl::Status CheckCrops();
  absl::Status CheckImages();
  absl::Status CheckImage(int i);
  // Reserves the memory that the request's message already occupies.
  absl::Status HoldMessage();
  // Takes the quota, the queue room and the memory that the images need. If any
  // of these is not available, takes nothing.
  absl::Status Reserve();
  // Reserves queue room and memory for the images, which become `inputs` model
  // inputs. The quota is already taken. If room or memory is not available,
  // reserves nothing.
  absl::Status ReserveRoom(int inputs);
  // Reserves room in the model's queue if the images can meet their deadline.
  // `bytes` is the size of the images' inputs and results.
  absl::StatusOr<batching::Reservation> ReserveInputs(int64_t bytes);

  // Process an image. Schedule() and Prepare() use the decode pool, Submit()
  // the executor, and StartAnswer() the finish pool or the batch thread.
  void Schedule(OpenItem open);
  void Prepare(OpenItem open);
  // Counts an image that failed to decode, unless decoding was cancelled.
  // Returns the error with which the image ends.
  absl::Status Undecoded(int i, const absl::Status& status) const;
  // Creates the task of one model input, without the task's `done`. Records the
  // submission in `run`.
  batching::BatchTask MakeTask(image::ImageBuffer input,
                               batching::Reservation room, InputRun* run) const;
  void Submit(OpenItem open, image::ImageBuffer input);
  using EncoderMaker =
      absl::FunctionRef<std::unique_ptr<AnswerEncoder>(Item& item)>;
  // Starts to encode the image's answer, or ends the image if `status` is an
  // error. Calls `make_encoder` before it returns, and only if `status` is OK.
  void StartAnswer(OpenItem open, absl::Status status,
                   EncoderMaker make_encoder);

  // Process an image with parts. These methods replace Submit() and the end of
  // Prepare(). The image is decoded once. Each part becomes a model input and a
  // task as soon as its rows are decoded. The task that ends last starts the
  // answer. `memory` accounts for the decoding.
  void PrepareParts(OpenItem open, server::MemoryHold memory,
                    image::DecodeWatch::Wanted wanted);
  struct PartsToSubmit {
    std::shared_ptr<ImageParts> parts;
    size_t next = 0;
    absl::Status status;  // If not OK, no more parts are submitted.
  };
  // Submits the next parts, in order, that lie in the picture's first `rows`
  // rows.
  void SubmitParts(Item* item, const image::RgbImage& picture, int rows,
                   const image::DecodeWatch& watch, PartsToSubmit* left);
  void SubmitPart(Item* item, int part, image::ImageBuffer input,
                  std::shared_ptr<ImageParts> parts);
  void PartsDone(OpenItem open, absl::Status status,
                 std::vector<InputRun> runs);

  // Process an image whose model input is cut into parts. These methods replace
  // Submit(). The parts that the collector wants become tasks. The collector
  // processes the parts' results on the finish pool, and may then want more
  // parts.
  void SubmitCut(OpenItem open, image::ImageBuffer input);
  std::shared_ptr<ImageParts> MakeParts(OpenItem open);
  // Reports that the collector has work. Schedules the collector unless it is
  // already running.
  void CallCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void ScheduleCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void RunCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void SubmitWanted(Item* item, const std::shared_ptr<ImageParts>& parts);

  // Estimates how long the next encoding step takes. Returns zero if no step is
  // left.
  absl::Duration NextCost(const Item& item) const;
  // Run the next encoding step. If `status` is an error, these methods end the
  // image.
  void SchedulePostprocess(OpenItem open, absl::Status status);
  void Postprocess(OpenItem open, absl::Status status);
  absl::Status EncodePiece(int i);
  absl::Status WriteAnswer(int i, Answer answer);
  // Sets the current size of the image's answer. Returns RESPONSE_TOO_LARGE if
  // the answers of all images exceed the limit.
  absl::Status CountAnswer(Item* item, int64_t bytes);
  // Process the crops of an image. PictureCrops classifies the crops.
  void ClassifyCrops(OpenItem open);
  void EndCrops(OpenItem open, absl::StatusOr<v1::DetectResult> answer);
  // Only OpenItem calls this.
  void EndItem(int i, absl::Status status);

  // Records that the image's source is no longer read. The call for the last
  // image releases the request's message.
  void SourceDone(Item* item);
  void ReleaseRequest();

  // Drops all unfinished images at their next step.
  void Drop();
  // Ends the request. May destroy the prediction.
  void Finish(const absl::Status& status);
  void FinishAll();
  // Returns the status of the whole request. Must be called when all images
  // have ended.
  absl::Status Outcome() const;
  void WriteErrors();
  Timing SlowestTiming() const;
  void WriteTiming();
  void CountRequest(const absl::Status& status) const;

  // EndTrace() records the spans of a traced request. AddSpans() appends the
  // spans of one image or of one model input.
  void EndTrace(const absl::Status& status) const;
  void AddSpans(int i, std::vector<tracing::Span>* spans) const;
  void AddSpans(int i, const InputRun& run,
                std::vector<tracing::Span>* spans) const;

  // Creates a unit of work for one of the pools.
  server::Work MakeWork(absl::Duration cost, absl::Time deadline,
                        absl::AnyInvocable<void()> run) const;

  // Returns CANCELLED if the request was dropped, and DEADLINE_EXCEEDED after
  // `deadline`.
  absl::Status CheckAlive(absl::string_view stage, absl::Time deadline) const;
  // Returns RESOURCE_EXHAUSTED if `bytes` exceeds the maximum response size.
  absl::Status CheckSize(int64_t bytes) const;

  const PredictionEnvironment& env_;
  const PredictionRequest request_;
  ResponseWriter& writer_;
  const std::string client_;  // The caller's name or address.
  const std::unique_ptr<const TaskHandler> handler_;
  observability::RequestRecord record_;
  // Null if the request is not traced.
  const std::shared_ptr<const tracing::RequestTrace> trace_;
  const absl::Time deadline_;  // By base::SteadyNow().
  // The deadline for the start of a batch, at most deadline_.
  const absl::Time queue_deadline_;
  const uint64_t group_;  // Identifies the request's work in both pools.

  // Set by CheckRequest().
  std::shared_ptr<repository::ModelVersion> version_;
  std::shared_ptr<repository::LoadedModel> model_;
  // The model that classifies crops, or null if the request asks for no crops.
  std::shared_ptr<repository::ModelVersion> classifier_;
  // The estimated time to encode the longest answer. Set by Admit().
  absl::Duration longest_answer_;

  server::MemoryHold message_memory_;  // Released by ReleaseRequest().
  bool request_released_ = false;
  std::atomic<int> sources_left_{0};  // Images whose source may be read.
  std::vector<Item> items_;
  // The number of unfinished images. The thread that decrements it to zero may
  // read all items.
  std::atomic<int> pending_{0};
  // The size in bytes of all answers so far. Includes incomplete answers.
  std::atomic<int64_t> answer_bytes_{0};
  std::atomic<bool> client_gone_{false};
  // Set by Drop() if the client has disconnected, an image of an atomic request
  // has failed, or the response is too large. The batcher also reads this flag.
  const std::shared_ptr<std::atomic<bool>> dropped_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PREDICTION_H_
