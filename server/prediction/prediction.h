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

// The services and limits that predictions use. The services must outlive the
// predictions.
struct PredictionEnvironment {
  repository::ModelRepository& repository;
  server::FairPool& decode_pool;
  // Limits the number of images that wait for decode_pool.
  batching::QueueRoom& decode_room;
  // Encodes answers. This pool is separate from decode_pool, so that an image
  // with a result does not wait until other images are decoded.
  server::FairPool& finish_pool;
  // Limits the number of images whose answers wait for finish_pool or are being
  // encoded.
  batching::QueueRoom& finish_room;
  // Accounts for the memory of requests.
  server::MemoryBudget& memory;
  // Estimates how long work in decode_pool or finish_pool takes.
  ExpectedCosts& costs;
  observability::Metrics& metrics;
  observability::Logger& log;
  // A client that sends no deadlines is logged once. This set contains the
  // clients that were already logged.
  server::ClientSet& without_deadline;
  RequestLimits limits;
  int64_t max_response_bytes = 64 << 20;
  absl::Duration default_deadline = absl::Seconds(30);
  absl::Duration max_deadline = absl::Seconds(120);
  std::function<absl::Time()> clock =
      base::SteadyNow;                // The clock for deadlines.
  tracing::Tracer* tracer = nullptr;  // Null if no request is traced.
  // Enforces the quota of each caller. If null, callers have no quota.
  security::ClientQuotas* quotas = nullptr;
};

// Writes a prediction's response in a transport's format. Several threads may
// call SetAnswer() at the same time, and another thread may call
// ReleaseRequest() meanwhile. All other calls are made one after another.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // Called once, before SetAnswer(), SetError() and SetTiming(). Not called if
  // the whole request is refused. `images` is the number of images in the
  // request.
  virtual void Start(const std::string& model, int images) = 0;
  // Called when the prediction no longer reads the request. The transport may
  // then free the request's message. Called exactly once, before Done().
  virtual void ReleaseRequest() {}
  // Writes the answer to image `i`. Returns how many bytes the answer takes in
  // the response message. Several threads may call this method at the same time
  // for different images.
  virtual int64_t SetAnswer(int i, Answer answer) = 0;
  virtual void SetError(int i, const absl::Status& error) = 0;
  virtual void SetTiming(const v1::Timing& timing) = 0;
  // Returns the size of the whole response message in bytes.
  virtual int64_t Bytes() const = 0;
  // Called exactly once, after all other methods. If `status` is an error, the
  // transport sends only the error. This call may destroy the prediction.
  virtual void Done(const absl::Status& status) = 0;
};

// Processes one request of any transport, from admission to the last answer.
// The prediction first checks the request, and reserves memory and room in the
// queues. Each image then passes through the decode pool and the model's
// executor. Finally, a thread of the finish pool encodes the answer. If the
// answer is short, an idle batch thread may encode it instead. The writer's
// Done() is called exactly once, when the last image has ended. No thread waits
// for another thread.
//
//   Prediction prediction(environment, std::move(request), &writer);
//   prediction.Start(absl::OkStatus());
//
// Call Start() once. Any thread may call Cancel() at any time. After Start(),
// the prediction must live until Done() is called. Until the prediction is
// destroyed, its answers count as memory in use and the request counts as in
// flight. The owner must therefore destroy the prediction as soon as the
// answers are sent.
class Prediction {
 public:
  // `writer` must outlive the prediction. A prediction with a `parent` does a
  // part of the work for the parent's request. For example, it classifies the
  // crops of a detection request. If this prediction or its parent is dropped
  // (see Drop()), the other one is dropped too. `parent` must outlive the
  // prediction.
  Prediction(const PredictionEnvironment& environment,
             PredictionRequest request, ResponseWriter* writer,
             const Prediction* parent = nullptr);

  // Starts the prediction. `serving` is the result of the checks that the
  // transport made before this call. If `serving` is an error, the request ends
  // immediately with this error. For example, `serving` is an error if the
  // request is malformed or the server is draining. Start() does not block for
  // long, because it decodes no images.
  void Start(const absl::Status& serving);

  // Reports that the caller has disconnected or cancelled. Done() is still
  // called.
  void Cancel();

 private:
  // The resources that an image holds in the server. All of them are released
  // at the latest when the image ends. decode_room is released when decoding
  // starts. input_room is moved to the batch task and released when the task
  // leaves the batch queue. input_memory is released when the batch has ended.
  // picture_memory is released when the model inputs of all crops are created.
  // finish_room is not reserved before the batch has ended.
  struct Admission {
    security::ClientQuotas::Hold quota;
    batching::Reservation decode_room;
    batching::Reservation input_room;
    server::MemoryHold input_memory;
    server::MemoryHold picture_memory;
    batching::Reservation answer_room;
    batching::Reservation finish_room;
  };

  // A model input that is cut into parts, for example into windows. The parts
  // are cut one after another. Each part is submitted to the batch queue as
  // soon as it is cut. The number of submitted parts never exceeds the current
  // result of PartCollector::Wanted().
  struct UncutInput {
    image::ImageBuffer image;  // Freed when all parts are submitted.
    int submitted = 0;         // The number of submitted parts.
    // The number of CallCollector() calls that RunCollector() has not handled
    // yet. While RunCollector() is scheduled or running, the number is above 0.
    // CallCollector() increments the number, and schedules RunCollector() only
    // if the number was 0. Two threads therefore never execute RunCollector()
    // at the same time. If RunCollector() fails, the number stays above 0, so
    // RunCollector() never runs again. The number is initially 1, because
    // SubmitCut() runs RunCollector() without CallCollector().
    std::atomic<int> calls{1};
  };

  // One image of the request and the state of its processing. Until the image
  // has ended, only the threads that process the image use this object.
  struct Item {
    image::ImageSource source;
    ImageFacts facts;
    Admission admission;
    // The memory reserved for the answer. It is released when the answer is
    // sent or when the image fails.
    server::MemoryHold answer_memory;
    // The current size of the answer in bytes. Prediction::answer_bytes_ is the
    // sum of these sizes for all images.
    int64_t answer_bytes = 0;
    std::unique_ptr<PartCollector> collector;  // Set if the image has parts.
    std::unique_ptr<UncutInput>
        uncut;  // Set if the model input is cut into parts.
    std::unique_ptr<AnswerEncoder> encoder;  // Set while encoding the answer.
    image::RgbImage picture;                 // Set if crops are classified.
    // The detected objects, while their crops are not classified yet.
    std::optional<v1::DetectResult> found;
    std::unique_ptr<ResponseWriter> crops;  // Classifies the crops of `found`.
    bool source_done = false;  // True if `source` is no longer read.
    absl::Status status;
    image::PictureFrame frame;
    absl::Duration decode;
    absl::Duration preprocess;
    absl::Duration postprocess;
    // Describes how the image's model input was run. If the image has parts,
    // describes the part with the longest inference. `run.batch.queue` is then
    // the longest queue time of all parts.
    InputRun run;
    std::vector<InputRun> part_runs;  // One entry per part.
    // decode_started is the start time of decoding the image. encode_started is
    // the start time of encoding the answer. If the model input is cut into
    // parts, encode_started is already set when the collector first processes
    // results. A time is InfinitePast() if the image did not reach the step.
    absl::Time decode_started = absl::InfinitePast();
    absl::Time encode_started = absl::InfinitePast();
    absl::Time ended;  // Set only if the request is traced.
  };
  static bool IsAnswered(const Item& item) { return item.status.ok(); }

  // How long the request spent in each stage. For each stage, this is the
  // longest time of all images.
  struct Timing {
    absl::Duration decode, preprocess, postprocess, total;
    batching::BatchInfo batch;
  };

  // Represents the obligation to end an image. If this object is destroyed
  // before End() is called, for example by an exception, the image ends with
  // INTERNAL.
  class OpenItem {
   public:
    OpenItem(Prediction* prediction, int i) : prediction_(prediction), i_(i) {}
    OpenItem(OpenItem&& other) noexcept
        : prediction_(std::exchange(other.prediction_, nullptr)),
          i_(other.i_) {}
    ~OpenItem();

    int index() const { return i_; }
    // Ends the image with `status`. If this is the last image, may destroy the
    // prediction.
    void End(absl::Status status) {
      std::exchange(prediction_, nullptr)->EndItem(i_, std::move(status));
    }

   private:
    Prediction* prediction_;  // Null once the image has ended.
    const int i_;
  };

  // Finds the model, calls HoldMessage() and runs all checks that need no
  // image.
  absl::Status CheckRequest();
  // Converts the error for an unknown model to the error that the caller gets.
  // The result lists other models only if the caller may read them.
  absl::Status NotFound(const absl::Status& status) const;
  // Admits the request and schedules its images. `checked` is the result of the
  // earlier checks. If `checked` is an error, ends the request instead.
  void Begin(const absl::Status& checked);
  // Checks the images and reserves queue room and memory for them. If an image
  // fails and allow_partial_results is set, the image gets its own error and
  // the request continues.
  absl::Status Admit();
  absl::Status CheckTask() const;
  // Returns the request's parameters for crops, or null if the request asks for
  // no crops.
  const v1::Crops* crops() const;
  // Finds the model of the crops and checks the parameters for crops.
  absl::Status CheckCrops();
  absl::Status CheckImages();
  absl::Status CheckImage(int i);
  // Counts the request's message against the server's memory budget. The
  // message is already in memory. Returns an error if the message is too large
  // or too little of the budget is free.
  absl::Status HoldMessage();
  // Takes the quota, the queue room and the memory that the images need. If one
  // of these is not available, takes nothing and returns an error.
  absl::Status Reserve();
  // Reserves queue room and memory for the images. `inputs` is the number of
  // model inputs that are created from these images. The caller must have taken
  // the quota before. If room or memory is not available, reserves nothing and
  // returns an error.
  absl::Status ReserveRoom(int inputs);
  // Reserves room in the model's queue. `bytes` is the size of the images'
  // inputs and results. Returns an error if there is no room, or if the images
  // cannot meet their deadline.
  absl::StatusOr<batching::Reservation> ReserveInputs(int64_t bytes);

  // The steps of an image. Schedule() hands the image to the decode pool. In
  // this pool, Prepare() decodes the image and creates the model input.
  // Submit() hands the input to the executor. When the batch has ended,
  // StartAnswer() starts to encode the answer.
  void Schedule(OpenItem open);
  void Prepare(OpenItem open);
  // Counts an image that failed to decode, unless decoding was cancelled.
  // Returns the error with which the image ends.
  absl::Status Undecoded(int i, const absl::Status& status) const;
  // Creates the batch task for one model input, without the callback `done`.
  // Records the time of submission in `run`.
  batching::BatchTask MakeTask(image::ImageBuffer input,
                               batching::Reservation room, InputRun* run) const;
  void Submit(OpenItem open, image::ImageBuffer input);
  using EncoderMaker =
      absl::FunctionRef<std::unique_ptr<AnswerEncoder>(Item& item)>;
  // Starts to encode the image's answer. If `status` is an error or finish_room
  // is full, the image ends with an error instead. `make_encoder` is not used
  // after this call.
  void StartAnswer(OpenItem open, absl::Status status,
                   EncoderMaker make_encoder);

  // The steps of an image that is divided into parts, for example into tiles.
  // Prepare() calls PrepareParts(), and Submit() is not used. PrepareParts()
  // decodes the image once. As soon as the rows of a part are decoded, the part
  // becomes a model input and a batch task. When all tasks have ended,
  // PartsDone() starts to encode the answer. `memory` accounts for the memory
  // that decoding uses.
  void PrepareParts(OpenItem open, server::MemoryHold memory,
                    image::DecodeWatch::Wanted wanted);
  struct PartsToSubmit {
    std::shared_ptr<ImageParts> parts;
    size_t next = 0;
    absl::Status status;  // If not OK, no more parts are submitted.
  };
  // Submits the next parts in order. `rows` is the number of rows of the
  // picture that are decoded so far. Stops at the first part that needs a row
  // that is not decoded yet.
  void SubmitParts(Item* item, const image::RgbImage& picture, int rows,
                   const image::DecodeWatch& watch, PartsToSubmit* left);
  void SubmitPart(Item* item, int part, image::ImageBuffer input,
                  std::shared_ptr<ImageParts> parts);
  void PartsDone(OpenItem open, absl::Status status,
                 std::vector<InputRun> runs);

  // The steps of an image whose model input is cut into parts, for example into
  // windows. SubmitCut() replaces Submit(). SubmitWanted() submits as many
  // parts as the collector allows. RunCollector() processes the results of
  // parts on the finish pool. The collector may then allow more parts.
  void SubmitCut(OpenItem open, image::ImageBuffer input);
  std::shared_ptr<ImageParts> MakeParts(OpenItem open);
  // Called when the collector may have work. Schedules RunCollector(), unless
  // it is already scheduled or running.
  void CallCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void ScheduleCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void RunCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void SubmitWanted(Item* item, const std::shared_ptr<ImageParts>& parts);

  // Estimates how long the next step of encoding the answer takes. Returns zero
  // if no step is left.
  absl::Duration NextCost(const Item& item) const;
  // SchedulePostprocess() queues the next step of encoding the answer, and
  // Postprocess() runs this step. If `status` is an error, the image ends
  // instead.
  void SchedulePostprocess(OpenItem open, absl::Status status);
  void Postprocess(OpenItem open, absl::Status status);
  absl::Status EncodePiece(int i);
  absl::Status WriteAnswer(int i, Answer answer);
  // Sets the current size of the image's answer to `bytes`. Returns
  // RESOURCE_EXHAUSTED with the reason RESPONSE_TOO_LARGE if the answers of all
  // images together exceed the maximum response size.
  absl::Status CountAnswer(Item* item, int64_t bytes);
  // ClassifyCrops() passes the crops of an image to PictureCrops, which
  // classifies them. EndCrops() receives the result.
  void ClassifyCrops(OpenItem open);
  void EndCrops(OpenItem open, absl::StatusOr<v1::DetectResult> answer);
  // Ends image `i`. Only OpenItem::End() calls this method.
  void EndItem(int i, absl::Status status);

  // Records that the image's source is no longer read. When this was recorded
  // for all images, releases the request's message.
  void SourceDone(Item* item);
  void ReleaseRequest();

  // Marks the request as dropped. Its unfinished images end at their next step.
  void Drop();
  // Ends the request. May destroy the prediction.
  void Finish(const absl::Status& status);
  void FinishAll();
  // Returns the status of the whole request. May be called only after all
  // images have ended.
  absl::Status Outcome() const;
  void WriteErrors();
  Timing SlowestTiming() const;
  void WriteTiming();
  void CountRequest(const absl::Status& status) const;

  // EndTrace() records the spans (timed steps) of a traced request. AddSpans()
  // appends the spans of one image or of one model input.
  void EndTrace(const absl::Status& status) const;
  void AddSpans(int i, std::vector<tracing::Span>* spans) const;
  void AddSpans(int i, const InputRun& run,
                std::vector<tracing::Span>* spans) const;

  // Creates a unit of work for decode_pool or finish_pool.
  server::Work MakeWork(absl::Duration cost, absl::Time deadline,
                        absl::AnyInvocable<void()> run) const;

  // Returns CANCELLED if the request was dropped, or DEADLINE_EXCEEDED if
  // `deadline` has passed. The error contains `stage`, for example "decode".
  absl::Status CheckAlive(absl::string_view stage, absl::Time deadline) const;
  // Returns RESOURCE_EXHAUSTED with the reason RESPONSE_TOO_LARGE if `bytes`
  // exceeds the maximum response size.
  absl::Status CheckSize(int64_t bytes) const;

  const PredictionEnvironment& env_;
  const PredictionRequest request_;
  ResponseWriter& writer_;
  const std::string client_;  // The caller's name or address.
  const std::unique_ptr<const TaskHandler> handler_;
  observability::RequestRecord record_;
  // Null if the request is not traced.
  const std::shared_ptr<const tracing::RequestTrace> trace_;
  // The deadline of the request, by base::SteadyNow().
  const absl::Time deadline_;
  // The time by which an image must be in a batch. It is never later than
  // deadline_.
  const absl::Time queue_deadline_;
  // Identifies the request's work in decode_pool and finish_pool.
  const uint64_t group_;

  // CheckRequest() sets the next three members.
  std::shared_ptr<repository::ModelVersion> version_;
  std::shared_ptr<repository::LoadedModel> model_;
  // The model that classifies crops, or null if the request asks for no crops.
  std::shared_ptr<repository::ModelVersion> classifier_;
  // The longest estimated time to encode the answer of one image. Admit() sets
  // this member.
  absl::Duration longest_answer_;

  server::MemoryHold message_memory_;  // Released by ReleaseRequest().
  bool request_released_ = false;
  // The number of images whose source may still be read.
  std::atomic<int> sources_left_{0};
  std::vector<Item> items_;
  // The number of unfinished images. The thread that decrements this number to
  // zero may read all items.
  std::atomic<int> pending_{0};
  // The size in bytes of all answers so far. Includes incomplete answers.
  std::atomic<int64_t> answer_bytes_{0};
  std::atomic<bool> client_gone_{false};
  // True if the request is dropped. Drop() sets this flag. Drop() is called if
  // the client has disconnected or the response is too large. It is also called
  // if an image has failed and partial results are not allowed. A prediction
  // and its parent share one flag. The batcher reads the flag too.
  const std::shared_ptr<std::atomic<bool>> dropped_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PREDICTION_H_
