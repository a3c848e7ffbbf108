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

// What predictions work with. All of it outlives them.
struct PredictionEnvironment {
  repository::ModelRepository& repository;
  server::FairPool& decode_pool;
  // Bounds the images that wait for decode_pool.
  batching::QueueRoom& decode_room;
  // Encodes answers. It is a pool of its own, so that answers do not queue
  // behind pictures that wait to be decoded.
  server::FairPool& finish_pool;
  // Bounds the images whose answers wait for finish_pool or are encoded.
  batching::QueueRoom& finish_room;
  // What requests hold is counted here.
  server::MemoryBudget& memory;
  // Tells how long pieces of work for both pools take.
  ExpectedCosts& costs;
  observability::Metrics& metrics;
  observability::Logger& log;
  // Peers already logged as sending no deadline.
  server::ClientSet& without_deadline;
  RequestLimits limits;
  int64_t max_response_bytes = 64 << 20;
  absl::Duration default_deadline = absl::Seconds(30);
  absl::Duration max_deadline = absl::Seconds(120);
  std::function<absl::Time()> clock = base::SteadyNow;  // For deadlines.
  tracing::Tracer* tracer = nullptr;  // Null: no request is traced.
  // What each caller may have in the server; null: any number of images.
  security::ClientQuotas* quotas = nullptr;
};

// Writes a prediction's response as a transport sends it. The methods are
// called one after another, but for SetAnswer().
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // Called once, before any other, unless the whole request is refused.
  virtual void Start(const std::string& model, int images) = 0;
  // No view of the request is used any more: its message may go. Called exactly
  // once, before Done(), maybe while other threads are in SetAnswer().
  virtual void ReleaseRequest() {}
  // Writes the answer to the i-th image and returns how many bytes it takes in
  // the message. Several threads call it at once, for different images.
  virtual int64_t SetAnswer(int i, Answer answer) = 0;
  virtual void SetError(int i, const absl::Status& error) = 0;
  virtual void SetTiming(const v1::Timing& timing) = 0;
  // The bytes of the whole message.
  virtual int64_t Bytes() const = 0;
  // Called exactly once, as the last. Unless `status` is OK, nothing else that
  // was written is sent. May destroy the prediction.
  virtual void Done(const absl::Status& status) = 0;
};

// One request from admission to its last answer, whatever transport it came by:
// checks it, reserves room, sends each image through the decode pool and the
// model's executor, encodes the answers on the finish pool, or a short one on
// its idle batch thread, and calls the writer's Done() exactly once, when the
// last image has ended. No thread ever waits for another.
//
//   Prediction prediction(environment, std::move(request), &writer);
//   prediction.Start(absl::OkStatus());
//
// Start() is called once. Cancel() may be called at any time by any thread.
// Once started, the prediction must live until Done() was called. Until it is
// destroyed its answers count as held memory and it as a request in flight:
// destroy it once they are sent.
class Prediction {
 public:
  // `writer` outlives the prediction. With a `parent`, which outlives it too,
  // it is part of the parent's request: what drops one drops the other.
  Prediction(const PredictionEnvironment& environment,
             PredictionRequest request, ResponseWriter* writer,
             const Prediction* parent = nullptr);

  // `serving` is the error to answer at once, or OK. Never blocks for long:
  // only checks that need no decoding are made here.
  void Start(const absl::Status& serving);

  // The caller has gone or wants no answer. Done() is still called.
  void Cancel();

 private:
  // What an image holds in the server. It ends with the image, but each part
  // may be released before.
  struct Admission {
    security::ClientQuotas::Hold quota;
    batching::Reservation decode_room;  // Until a thread decodes it.
    batching::Reservation input_room;   // Until it is submitted.
    server::MemoryHold input_memory;    // Until its batch has ended.
    server::MemoryHold picture_memory;  // Until its crops' inputs are made.
    batching::Reservation answer_room;
    batching::Reservation finish_room;  // From its batch's end on.
  };

  // An input that parts are cut out of, as its collector wants them.
  struct UncutInput {
    image::ImageBuffer image;  // Until all parts are submitted.
    int submitted = 0;         // Parts.
    // How often the collector got work since there was none. The thread that
    // counts the first sees to it, so that only one does.
    std::atomic<int> calls{1};
  };

  // One image. Used by the thread that it is on.
  struct Item {
    image::ImageSource source;
    ImageFacts facts;
    Admission admission;
    server::MemoryHold answer_memory;          // Until the answer is sent.
    int64_t answer_bytes = 0;                  // Its part of answer_bytes_.
    std::unique_ptr<PartCollector> collector;  // Set if it has parts.
    std::unique_ptr<UncutInput> uncut;         // If parts are cut out of it.
    std::unique_ptr<AnswerEncoder> encoder;    // While its answer is encoded.
    image::RgbImage picture;                   // Kept for its crops.
    std::optional<v1::DetectResult> found;  // Its crops are to be classified.
    std::unique_ptr<ResponseWriter> crops;  // Classifies them.
    bool source_done = false;               // Its source is read no more.
    absl::Status status;
    image::PictureFrame frame;
    absl::Duration decode;
    absl::Duration preprocess;
    absl::Duration postprocess;
    // Its input's run, or what its parts took at most in each stage.
    InputRun run;
    std::vector<InputRun> part_runs;  // One for each of its parts.
    // When it reached a stage; InfinitePast(): never.
    absl::Time decode_started = absl::InfinitePast();
    absl::Time encode_started = absl::InfinitePast();
    absl::Time ended;  // Only if the request is traced.
  };
  static bool IsAnswered(const Item& item) { return item.status.ok(); }

  // Where the request's time went; of several images the slowest for each
  // stage.
  struct Timing {
    absl::Duration decode, preprocess, postprocess, total;
    batching::BatchInfo batch;
  };

  // The duty to end an image. If it is dropped, because something threw on the
  // way, the image ends with INTERNAL.
  class OpenItem {
   public:
    OpenItem(Prediction* prediction, int i) : prediction_(prediction), i_(i) {}
    OpenItem(OpenItem&& other) noexcept
        : prediction_(std::exchange(other.prediction_, nullptr)),
          i_(other.i_) {}
    ~OpenItem();

    int index() const { return i_; }
    // The image's last step; the last image's may destroy the prediction.
    void End(absl::Status status) {
      std::exchange(prediction_, nullptr)->EndItem(i_, std::move(status));
    }

   private:
    Prediction* prediction_;  // Null once the image has ended.
    const int i_;
  };

  // Finds the model, holds the message's memory and checks what needs no image.
  absl::Status CheckRequest();
  // The error of a model that was not found, as the caller may see it.
  absl::Status NotFound(const absl::Status& status) const;
  // Admits the request unless `checked` is an error, and hands its images on.
  void Begin(const absl::Status& checked);
  // Checks the images and reserves room for them. Fills the status of images
  // that allow_partial_results lets fail alone.
  absl::Status Admit();
  absl::Status CheckTask() const;
  // What the request says of crops; null: nothing.
  const v1::Crops* crops() const;
  // Finds the model for the crops and checks what the request says of them.
  absl::Status CheckCrops();
  absl::Status CheckImages();
  absl::Status CheckImage(int i);
  // Takes the memory that the request's message has taken already.
  absl::Status HoldMessage();
  // Reserves all the room that the images need before they are in their batch
  // and the memory that they hold, or nothing.
  absl::Status Reserve();
  // Reserves room and memory for the images, which become `inputs` inputs and
  // whose quota is taken, or nothing.
  absl::Status ReserveRoom(int inputs);
  // Reserves the images' places in the model's queue, if they would be answered
  // in time.
  absl::StatusOr<batching::Reservation> ReserveInputs(int64_t bytes);

  // The steps of an image: on the decode pool, then in the executor, then on
  // the finish pool or on the batch thread.
  void Schedule(OpenItem open);
  void Prepare(OpenItem open);
  // Counts an image that could not be decoded because of `status`, unless it
  // was given up. Returns the error that it ends with.
  absl::Status Undecoded(int i, const absl::Status& status) const;
  // The task of an input without its `done`. Notes in `run` that it begins.
  batching::BatchTask MakeTask(image::ImageBuffer input,
                               batching::Reservation room, InputRun* run) const;
  void Submit(OpenItem open, image::ImageBuffer input);
  using EncoderMaker =
      absl::FunctionRef<std::unique_ptr<AnswerEncoder>(Item& item)>;
  // `make_encoder` is called at once or never: not unless `status` is OK.
  void StartAnswer(OpenItem open, absl::Status status,
                   EncoderMaker make_encoder);

  // The steps of an image with parts in place of the rest of Prepare() and of
  // Submit(): it is decoded once, its inputs are made of it one after another,
  // each as soon as its rows are decoded, and becomes a task at once, and the
  // last task to end starts the answer. `memory` is what decoding takes.
  void PrepareParts(OpenItem open, server::MemoryHold memory,
                    image::DecodeWatch::Wanted wanted);
  struct PartsToSubmit {
    std::shared_ptr<ImageParts> parts;
    size_t next = 0;
    absl::Status status;  // Unless OK, none is submitted any more.
  };
  // Submits parts, in their order, that lie in the picture's first `rows` rows.
  void SubmitParts(Item* item, const image::RgbImage& picture, int rows,
                   const image::DecodeWatch& watch, PartsToSubmit* left);
  void SubmitPart(Item* item, int part, image::ImageBuffer input,
                  std::shared_ptr<ImageParts> parts);
  void PartsDone(OpenItem open, absl::Status status,
                 std::vector<InputRun> runs);

  // The steps of an image with parts of its input in place of Submit(): the
  // parts that the collector wants become tasks; on the finish pool it works on
  // their results, and wants further ones.
  void SubmitCut(OpenItem open, image::ImageBuffer input);
  std::shared_ptr<ImageParts> MakeParts(OpenItem open);
  // The collector got work.
  void CallCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void ScheduleCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void RunCollector(Item* item, std::shared_ptr<ImageParts> parts);
  void SubmitWanted(Item* item, const std::shared_ptr<ImageParts>& parts);

  // How long the next piece of the answer is expected to take; zero: none is
  // left.
  absl::Duration NextCost(const Item& item) const;
  // Encodes the next piece of the answer, or ends the image with `status`.
  void SchedulePostprocess(OpenItem open, absl::Status status);
  void Postprocess(OpenItem open, absl::Status status);
  absl::Status EncodePiece(int i);
  absl::Status WriteAnswer(int i, Answer answer);
  // Counts `bytes` for the image's answer so far. RESPONSE_TOO_LARGE if the
  // answers of all images are too large together.
  absl::Status CountAnswer(Item* item, int64_t bytes);
  // The last steps of an image with crops, which PictureCrops classifies.
  void ClassifyCrops(OpenItem open);
  void EndCrops(OpenItem open, absl::StatusOr<v1::DetectResult> answer);
  // Only OpenItem calls it.
  void EndItem(int i, absl::Status status);

  // The image's source is not read any more; the last image's ends the use of
  // the request's message.
  void SourceDone(Item* item);
  void ReleaseRequest();

  // Drops all images that are left, at their next step.
  void Drop();
  // Ends the request; may destroy this.
  void Finish(const absl::Status& status);
  void FinishAll();
  // The status of the request as a whole, once each image has ended.
  absl::Status Outcome() const;
  void WriteErrors();
  Timing SlowestTiming() const;
  void WriteTiming();
  void CountRequest(const absl::Status& status) const;

  // The spans of the request, and of one image, if it is traced.
  void EndTrace(const absl::Status& status) const;
  void AddSpans(int i, std::vector<tracing::Span>* spans) const;
  void AddSpans(int i, const InputRun& run,
                std::vector<tracing::Span>* spans) const;

  // A piece of work for one of the pools.
  server::Work MakeWork(absl::Duration cost, absl::Time deadline,
                        absl::AnyInvocable<void()> run) const;

  // CANCELLED or DEADLINE_EXCEEDED if so; `deadline` is due.
  absl::Status CheckAlive(absl::string_view stage, absl::Time deadline) const;
  // RESOURCE_EXHAUSTED if a response of `bytes` would not be sent.
  absl::Status CheckSize(int64_t bytes) const;

  const PredictionEnvironment& env_;
  const PredictionRequest request_;
  ResponseWriter& writer_;
  const std::string client_;  // The caller's name.
  const std::unique_ptr<const TaskHandler> handler_;
  observability::RequestRecord record_;
  // Null: the request is not traced.
  const std::shared_ptr<const tracing::RequestTrace> trace_;
  const absl::Time deadline_;  // The request's, in SteadyNow()'s time.
  // To be in a batch by; not after deadline_.
  const absl::Time queue_deadline_;
  const uint64_t group_;  // Marks the request's work in both pools.

  // Fixed by CheckRequest().
  std::shared_ptr<repository::ModelVersion> version_;
  std::shared_ptr<repository::LoadedModel> model_;
  // The crops' model; null: none are asked for.
  std::shared_ptr<repository::ModelVersion> classifier_;
  // Fixed by Admit(): how long one thread is expected to encode the longest of
  // the answers.
  absl::Duration longest_answer_;

  server::MemoryHold message_memory_;  // Until ReleaseRequest().
  bool request_released_ = false;
  std::atomic<int> sources_left_{0};  // Items whose source may be read.
  std::vector<Item> items_;
  // Items not ended. The thread that takes it to zero may read all of them.
  std::atomic<int> pending_{0};
  // Bytes of all answers so far, including those that are still being encoded.
  std::atomic<int64_t> answer_bytes_{0};
  std::atomic<bool> client_gone_{false};
  // Set by Drop(): the client has gone, an image of an atomic request has
  // failed, or the response is too large already. The batcher sees it too.
  const std::shared_ptr<std::atomic<bool>> dropped_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PREDICTION_H_
