#ifndef SFMAMBA_CLIENT_COMMANDS_PREDICT_FILES_H_
#define SFMAMBA_CLIENT_COMMANDS_PREDICT_FILES_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "client/commands/command.h"
#include "client/commands/inputs.h"
#include "client/commands/output/progress_bar.h"
#include "client/commands/predict.h"
#include "client/rpc/patience.h"
#include "client/rpc/vision_client.h"

// The common code of the verbs, such as classify, that send picture files and
// show the answers.
namespace sfmamba::client {

struct PredictFlags {
  CommonFlags common;
  std::string model;
  bool timing = false;
  bool traced = false;

  // `kind` is the model's name in the help, for example "classifier".
  void AddTo(absl::string_view kind, FlagSet* flags);
};

// Returns a W3C traceparent for a new, sampled trace. Writes the trace's ID to
// `err`.
std::string NewTrace(const Console& console);

using Rows = std::vector<std::vector<std::string>>;

// Describes the table of a verb. Its first column, which has the file's name,
// is not included here.
struct VerbTable {
  std::vector<std::string> headings;
  int message_column = 0;     // The column that shows `nothing_found`.
  std::string nothing_found;  // Shown if VerbActions::rows returns no rows.
};

// The actions of a verb on a file and its result.
template <typename Result>
struct VerbActions {
  PrepareImage prepare;  // Makes the image that is sent.
  // Returns an error if the result is malformed. If this function is null,
  // results are not checked.
  std::function<absl::Status(const Result&)> check;
  // Returns the rows of the table (see VerbTable) for this result.
  std::function<Rows(const Result&)> rows;
  // Writes members of the file's JSON object.
  std::function<void(const Result&, JsonWriter*)> write_json;
  // Optional. Draws the result of file i and returns the drawing's path.
  // Returns "" if it draws nothing.
  std::function<absl::StatusOr<std::string>(size_t i, const std::string& file,
                                            const Result&)>
      annotate;
};

// The outcome of a file, ready to be shown.
struct FileOutcome {
  std::string file;
  absl::Status status;  // OK, or the error of the file or answer.
  bool sent = false;    // False if the file could not be read or prepared.
  // The members below are set only if `status` is OK.
  std::string model;
  v1::Timing timing;
  Rows rows;
  std::function<void(JsonWriter*)> write_json;
  // The path of the drawing. It is empty if nothing was drawn.
  absl::StatusOr<std::string> drawing = std::string();
};

// Shows the answers in the format that `flags` ask for. Writes a line to `err`
// for each file that failed. JSON contains the errors too. Returns the exit
// code.
int ShowOutcomes(const std::vector<FileOutcome>& outcomes,
                 const VerbTable& table, const PredictFlags& flags,
                 const Console& console);

// A file that is sent to the server, and its answer.
template <typename Response>
struct PendingFile {
  FileOutcome outcome;
  absl::StatusOr<Response> response;
  absl::optional<absl::Notification> done;  // Notified by the last attempt.
};

// Fills the outcome of file i from its response. The response is moved from.
template <typename Response, typename Result>
void Conclude(size_t i, const VerbActions<Result>& actions,
              PendingFile<Response>* pending) {
  FileOutcome& outcome = pending->outcome;
  outcome.status = pending->response.status();
  if (!outcome.status.ok()) return;
  Response& response = *pending->response;
  if (response.results_size() != 1) {
    outcome.status = absl::DataLossError(
        absl::StrCat(response.results_size(), " results, expected 1"));
    return;
  }
  Result& result = *response.mutable_results(0);
  if (actions.check != nullptr) outcome.status = actions.check(result);
  if (!outcome.status.ok()) return;
  outcome.model = response.model();
  outcome.timing = response.timing();
  outcome.rows = actions.rows(result);
  if (actions.annotate != nullptr) {
    outcome.drawing = actions.annotate(i, outcome.file, result);
  }
  outcome.write_json = [write = actions.write_json, result = std::move(result)](
                           JsonWriter* json) { write(result, json); };
}

// Reads the file and sends `request` with this file as its image.
template <typename Response, typename Request, typename Result>
void Send(VisionClient& client, absl::Duration timeout,
          const VerbActions<Result>& actions, Request* request,
          PendingFile<Response>* pending) {
  pending->done.emplace();
  absl::StatusOr<v1::Image> image =
      ReadImage(pending->outcome.file, actions.prepare);
  if (!image.ok()) {
    pending->response = image.status();
    pending->done->Notify();
    return;
  }
  pending->outcome.sent = true;
  *request->mutable_images(0) = *std::move(image);
  Predict(client, *request, timeout,
          [pending](absl::StatusOr<Response> response) {
            pending->response = std::move(response);
            pending->done->Notify();
          });
}

// Waits for the answer. Sends the file again while the server is unavailable.
template <typename Response, typename Request, typename Result>
void Await(VisionClient& client, absl::Duration timeout,
           const VerbActions<Result>& actions, Request* request,
           Patience* patience, PendingFile<Response>* pending) {
  for (;;) {
    pending->done->WaitForNotification();
    if (pending->response.ok()) return patience->Answered();
    const absl::optional<absl::Duration> delay =
        patience->DelayAfter(pending->response.status(), absl::Now());
    if (!delay.has_value()) return;
    absl::SleepFor(*delay);
    Send(client, timeout, actions, request, pending);
  }
}

// Sends `request` for each file, with the file as its only image. Returns the
// outcomes in the order of the files. Several requests are in flight while
// earlier answers are processed.
template <typename Response, typename Request, typename Result>
std::vector<FileOutcome> PredictFiles(const std::vector<std::string>& files,
                                      Request request,
                                      const VerbActions<Result>& actions,
                                      const PredictFlags& flags,
                                      const Console& console) {
  constexpr size_t kMaxInFlight = 8;
  std::vector<PendingFile<Response>> pending(files.size());
  std::vector<FileOutcome> outcomes;
  request.set_model(flags.model);
  request.mutable_options()->set_include_timing(flags.timing);
  request.add_images();
  ProgressBar progress(console.err, console.show_progress && files.size() > 20);
  VisionClientOptions options = flags.common.client;
  if (flags.traced) options.traceparent = NewTrace(console);
  options.retry = false;  // `patience` retries for a longer time.
  VisionClient client(flags.common.server, options);
  client.AwaitHealth(flags.common.deadline);
  Patience patience(3);
  for (size_t i = 0; i < files.size() + kMaxInFlight; ++i) {
    if (i >= kMaxInFlight) {
      PendingFile<Response>& oldest = pending[i - kMaxInFlight];
      Await(client, flags.common.deadline, actions, &request, &patience,
            &oldest);
      Conclude(i - kMaxInFlight, actions, &oldest);
      outcomes.push_back(std::move(oldest.outcome));
    }
    if (i < files.size()) {
      progress.Show(1.0 * i / files.size(), files[i]);
      pending[i].outcome.file = files[i];
      Send(client, flags.common.deadline, actions, &request, &pending[i]);
    }
  }
  return outcomes;
}

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PREDICT_FILES_H_
