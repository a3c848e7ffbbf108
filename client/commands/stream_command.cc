#include "client/commands/stream_command.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/json.h"
#include "base/proto_duration.h"
#include "client/commands/inputs.h"
#include "client/commands/output/message_json.h"
#include "client/commands/picture_source.h"
#include "client/rpc/predict_stream.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/vision_client.h"

namespace sfmamba::client {
namespace {

using Answer = v1::StreamPredictResponse;

struct StreamFlags {
  CommonFlags common;
  std::string method = "classify";
  std::string model;
  int max_in_flight = 16;
  bool ordered = false;
  absl::Duration watch;

  void AddTo(FlagSet* flags) {
    common.AddTo(flags);
    flags->Add("method", "classify|detect|segment", "what to ask for", &method);
    flags->Add("model", "NAME",
               "model to ask; empty: the server's only or default one", &model);
    flags->Add("max_in_flight", "N",
               "pictures sent and not yet answered, 1 to 64", &max_in_flight);
    flags->Add("ordered", "", "answers in the order of the pictures", &ordered);
    flags->Add("watch", "DURATION",
               "of a folder: then send what comes into it, until nothing has "
               "come for this time",
               &watch);
  }
};

// Sets what all methods have in common, and returns the message's options.
template <typename Request>
v1::RequestOptions* Fill(const StreamFlags& flags, std::string picture,
                         Request* request) {
  request->set_model(flags.model);
  request->add_images()->set_encoded(std::move(picture));
  return request->mutable_options();
}

v1::StreamPredictRequest Message(const StreamFlags& flags,
                                 const std::string& id, std::string picture) {
  v1::StreamPredictRequest message;
  message.set_correlation_id(id);
  v1::RequestOptions* options = nullptr;
  if (flags.method == "detect") {
    options = Fill(flags, std::move(picture), message.mutable_detect());
  } else if (flags.method == "segment") {
    options = Fill(flags, std::move(picture), message.mutable_segment());
  } else {
    options = Fill(flags, std::move(picture), message.mutable_classify());
  }
  base::ToProto(flags.common.deadline, options->mutable_max_queue_wait());
  return message;
}

std::string ResultJson(const Answer& answer) {
  switch (answer.response_case()) {
    case Answer::kDetect:
      return MessageJson(answer.detect());
    case Answer::kSegment:
      return MessageJson(answer.segment());
    default:
      return MessageJson(answer.classify());
  }
}

// One run of the verb: a thread sends, one looks at the time, the caller's
// receives.
class StreamRun {
 public:
  StreamRun(const StreamFlags& flags, PictureSource* pictures,
            PredictStream* stream, const Console& console)
      : flags_(flags),
        pictures_(*pictures),
        stream_(*stream),
        console_(console) {}

  // Returns the exit code.
  int Run() {
    std::thread sender([this] { SendAll(); });
    std::thread watchman([this] { EndIfNothingComes(); });
    Answer answer;
    while (stream_.Receive(&answer)) Take(answer);
    pictures_.Stop();
    {
      absl::MutexLock lock(&mu_);
      over_ = true;
    }
    watchman.join();
    sender.join();
    absl::Status status = stream_.Finish();
    absl::MutexLock lock(&mu_);
    if (timed_out_) {
      status = absl::DeadlineExceededError(absl::StrCat(
          "no answer for ", absl::FormatDuration(flags_.common.deadline)));
    }
    for (const auto& [id, file] : sent_) {
      ReportError(file, status.ok() ? absl::DataLossError("it was not answered")
                                    : status);
    }
    if (!status.ok() && sent_.empty()) {
      WriteErrorLine(DescribeRpcError(status), console_);
      SetExit(kExitRpcError);
    } else if (taken_ == 0) {
      WriteErrorLine("got no picture, expected JPEG, PNG or WebP", console_);
      SetExit(kExitRpcError);
    }
    return exit_;
  }

 private:
  void SendAll() {
    std::string file;
    while (pictures_.Next(&file)) {
      const std::string id = absl::StrCat(taken_++);
      absl::StatusOr<std::string> picture = ReadFile(file);
      if (!picture.ok()) {
        absl::MutexLock lock(&mu_);
        ReportError(file, picture.status());
        SetExit(kExitUsage);
        continue;
      }
      {
        absl::MutexLock lock(&mu_);
        if (sent_.empty()) progress_ = absl::Now();
        sent_[id] = file;
      }
      if (!stream_.Send(Message(flags_, id, *std::move(picture)))) break;
    }
    stream_.SendNoMore();
  }

  void EndIfNothingComes() {
    absl::MutexLock lock(&mu_);
    const auto nothing_to_wait_for = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return over_;
    };
    while (!mu_.AwaitWithTimeout(absl::Condition(&nothing_to_wait_for),
                                 absl::Milliseconds(100))) {
      // The server itself lets an image wait in its queue for up to the
      // deadline; 5 s more leave time for the answer.
      const absl::Duration patience = flags_.common.deadline + absl::Seconds(5);
      if (!sent_.empty() && absl::Now() - progress_ > patience) {
        timed_out_ = true;
        stream_.Cancel();
        return;
      }
    }
  }

  void Take(const Answer& answer) {
    if (answer.has_notice()) {  // The server wants no more.
      pictures_.Stop();
      return;
    }
    absl::MutexLock lock(&mu_);
    progress_ = absl::Now();
    const auto found = sent_.find(answer.correlation_id());
    if (found == sent_.end()) return;
    const std::string file = std::move(found->second);
    sent_.erase(found);
    if (answer.has_error()) {
      ReportError(
          file,
          FromGrpcStatus(grpc::Status(
              static_cast<grpc::StatusCode>(answer.error().code()),
              answer.error().message(), answer.error().SerializeAsString())));
      return;
    }
    console_.out << "{\"file\": " << base::JsonString(file) << ", \""
                 << flags_.method
                 << "\": " << absl::StripAsciiWhitespace(ResultJson(answer))
                 << "}" << std::endl;
  }

  void ReportError(const std::string& file, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    JsonWriter json;
    json.BeginObject().Key("file").String(file);
    WriteError(status, &json);
    console_.out << json.EndObject().text() << std::endl;
    WriteErrorLine(absl::StrCat(file, ": ", DescribeRpcError(status)),
                   console_);
    SetExit(kExitRpcError);
  }

  // The graver one stays.
  void SetExit(int code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    exit_ = std::max(exit_, code);
  }

  const StreamFlags& flags_;
  PictureSource& pictures_;
  PredictStream& stream_;
  const Console& console_;
  int taken_ = 0;  // Names of pictures. Used by the sender until it has ended.

  absl::Mutex mu_;
  std::map<std::string, std::string> sent_ ABSL_GUARDED_BY(mu_);
  absl::Time progress_ ABSL_GUARDED_BY(mu_);
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  bool timed_out_ ABSL_GUARDED_BY(mu_) = false;
  int exit_ ABSL_GUARDED_BY(mu_) = kExitOk;
};

}  // namespace

int RunStream(const std::vector<std::string>& arguments,
              const Console& console) {
  StreamFlags stream;
  FlagSet flags(
      "sfmamba stream FOLDER|- [flags]",
      "Sends the pictures (JPEG, PNG or WebP) of a folder, or those that "
      "lines\n"
      "of standard input name, over one stream, and writes a line of JSON for\n"
      "each as it is answered. The server takes the next one as soon as it "
      "can;\n"
      "--deadline bounds how long each may wait there.");
  stream.AddTo(&flags);
  std::vector<std::string> positional;
  if (const auto exit =
          ParseArguments(&flags, arguments, &positional, console)) {
    return *exit;
  }
  if (positional.size() != 1) {
    return UsageError("stream takes one folder, or '-'", console);
  }
  if (stream.method != "classify" && stream.method != "detect" &&
      stream.method != "segment") {
    return UsageError(
        absl::StrCat("--method: expected classify, detect or segment, got '",
                     stream.method, "'"),
        console);
  }
  std::unique_ptr<PictureSource> pictures;
  if (positional[0] == "-") {
    pictures = std::make_unique<ListedPictures>(&std::cin);
  } else {
    auto folder = std::make_unique<FolderPictures>(positional[0], stream.watch);
    const absl::Status status = folder->Check();
    if (!status.ok()) return UsageError(status.message(), console);
    pictures = std::move(folder);
  }
  VisionClient client(stream.common.server, stream.common.client);
  v1::StreamConfig config;
  config.set_max_in_flight(stream.max_in_flight);
  config.set_preserve_order(stream.ordered);
  const std::unique_ptr<PredictStream> call = client.OpenStream(config);
  return StreamRun(stream, pictures.get(), call.get(), console).Run();
}

}  // namespace sfmamba::client
