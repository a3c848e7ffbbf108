#include "client/commands/stream_run.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/json.h"
#include "client/commands/inputs.h"
#include "client/commands/output/message_json.h"
#include "client/rpc/rpc_status.h"

namespace sfmamba::client {
namespace {

using Answer = v1::StreamPredictResponse;

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

absl::Status StatusOf(const google::rpc::Status& error) {
  return FromGrpcStatus(
      grpc::Status(static_cast<grpc::StatusCode>(error.code()), error.message(),
                   error.SerializeAsString()));
}

}  // namespace

int StreamRun::Run() {
  std::thread reader([this] { ReadAll(); });
  absl::Status failed;
  while (failed.ok() && AwaitPicture()) {
    failed = WhatFailed(RunCall());
    if (!failed.ok() && WaitAfter(failed)) failed = absl::OkStatus();
  }
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    for (const auto& [number, picture] : open_) {
      ReportError(picture.file, failed);
    }
    if (!failed.ok() && open_.empty()) {
      WriteErrorLine(DescribeRpcError(failed), console_);
      SetExit(kExitRpcError);
    }
    open_.clear();
    if (!failed.ok() && !all_read_) {
      WriteErrorLine("the pictures that follow were not sent", console_);
    }
  }
  pictures_.Stop();
  reader.join();
  absl::MutexLock lock(&mu_);
  if (failed.ok() && taken_ == 0) {
    WriteErrorLine("got no picture, expected JPEG, PNG or WebP", console_);
    SetExit(kExitRpcError);
  }
  return exit_;
}

// ---- Reading pictures ----

void StreamRun::ReadAll() {
  // The maximum number of pictures in memory. The server works on up to
  // max_in_flight pictures. The same number of pictures is read in advance.
  const size_t most = 2 * std::max(1, options_.config.max_in_flight());
  const auto has_room = [this, most]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stopped_ || open_.size() < most;
  };
  std::string file;
  while (pictures_.Next(&file)) {
    absl::StatusOr<std::string> bytes = ReadFile(file);
    absl::MutexLock lock(&mu_);
    if (stopped_) break;
    const int64_t number = taken_++;
    if (!bytes.ok()) {
      ReportError(file, bytes.status());
      SetExit(kExitUsage);
      continue;
    }
    auto message = std::make_shared<v1::StreamPredictRequest>(
        options_.message(*std::move(bytes)));
    message->set_correlation_id(absl::StrCat(number));
    open_[number] = {file, std::move(message)};
    mu_.Await(absl::Condition(&has_room));
  }
  absl::MutexLock lock(&mu_);
  all_read_ = true;
}

bool StreamRun::AwaitPicture() {
  absl::MutexLock lock(&mu_);
  const auto known = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return all_read_ || !open_.empty();
  };
  mu_.Await(absl::Condition(&known));
  return !open_.empty();
}

// ---- One call ----

absl::Status StreamRun::RunCall() {
  {
    absl::MutexLock lock(&mu_);
    next_ = 0;
    takes_requests_ = true;
    answered_ = over_ = timed_out_ = false;
    refusal_ = absl::OkStatus();
    progress_ = absl::Now();
  }
  client_.AwaitHealth(options_.deadline);
  const std::unique_ptr<PredictStream> stream =
      client_.OpenStream(options_.config);
  std::thread sender([&] { SendAll(stream.get()); });
  std::thread watchman([&] { EndIfNothingComes(stream.get()); });
  Answer answer;
  while (stream->Receive(&answer)) Take(answer);
  {
    absl::MutexLock lock(&mu_);
    over_ = true;
  }
  watchman.join();
  sender.join();
  return client_.Explain(stream->Finish());
}

void StreamRun::SendAll(PredictStream* stream) {
  const auto has_something_to_do = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return over_ || !takes_requests_ || all_read_ ||
           open_.lower_bound(next_) != open_.end();
  };
  for (;;) {
    std::shared_ptr<const v1::StreamPredictRequest> message;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_something_to_do));
      const auto first = open_.lower_bound(next_);
      if (over_ || !takes_requests_ || first == open_.end()) break;
      if (!Asks()) progress_ = absl::Now();
      next_ = first->first + 1;
      message = first->second.message;
    }
    if (!stream->Send(*message)) break;
  }
  stream->SendNoMore();
}

bool StreamRun::Asks() const {
  return !open_.empty() && open_.begin()->first < next_;
}

void StreamRun::EndIfNothingComes(PredictStream* stream) {
  // The server may let an image wait in its queue until the deadline. The
  // additional 5 s are for the answer to arrive.
  const absl::Duration most = options_.deadline + absl::Seconds(5);
  const auto is_over = [this]()
                           ABSL_NO_THREAD_SAFETY_ANALYSIS { return over_; };
  absl::MutexLock lock(&mu_);
  while (!mu_.AwaitWithTimeout(absl::Condition(&is_over),
                               absl::Milliseconds(100))) {
    if (Asks() && absl::Now() - progress_ > most) {
      timed_out_ = true;
      stream->Cancel();
      return;
    }
  }
}

void StreamRun::Take(const Answer& answer) {
  absl::MutexLock lock(&mu_);
  progress_ = absl::Now();
  if (answer.has_notice()) {
    takes_requests_ = false;
    return;
  }
  int64_t number = -1;
  (void)absl::SimpleAtoi(answer.correlation_id(), &number);
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  const absl::Status error =
      answer.has_error() ? StatusOf(answer.error()) : absl::OkStatus();
  if (MayPass(error)) {
    refusal_ = client_.Explain(error);
    takes_requests_ = false;
    return;
  }
  // If answers must be in order, answers after a refused picture are ignored.
  // The next call sends these pictures again.
  if (!refusal_.ok() && options_.config.preserve_order()) return;
  const std::string file = std::move(found->second.file);
  open_.erase(found);
  answered_ = true;
  waits_ = false;
  patience_.Answered();
  if (!error.ok()) return ReportError(file, error);
  console_.out << "{\"file\": " << base::JsonString(file) << ", \""
               << options_.method
               << "\": " << absl::StripAsciiWhitespace(ResultJson(answer))
               << "}" << std::endl;
}

// ---- Between two calls ----

absl::Status StreamRun::WhatFailed(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (timed_out_) {
    return absl::DeadlineExceededError(absl::StrCat(
        "no answer for ", absl::FormatDuration(options_.deadline)));
  }
  if (!status.ok() && !MayPass(status)) return status;
  if (open_.empty()) return absl::OkStatus();
  if (!refusal_.ok()) return refusal_;
  if (!status.ok()) return status;
  // The server has ended the call with OK, but some pictures have no answer. If
  // these pictures were not sent yet, the next call may send them at once. For
  // example, the server ends a call when it drains, or when no picture has
  // arrived for a long time. If the server neither answered a picture nor said
  // that it drains, the call counts as failed. Otherwise, such calls could
  // follow each other without a pause.
  if (!Asks() && (answered_ || !takes_requests_)) return absl::OkStatus();
  return absl::UnavailableError("the server has ended the stream");
}

bool StreamRun::WaitAfter(const absl::Status& error) {
  absl::Duration delay;
  {
    absl::MutexLock lock(&mu_);
    const auto found = patience_.DelayAfter(error, absl::Now());
    if (!found.has_value()) return false;
    delay = *found;
    if (!std::exchange(waits_, true)) {
      WriteErrorLine(absl::StrCat(DescribeRpcError(error), "; sending again"),
                     console_);
    }
  }
  absl::SleepFor(delay);
  return true;
}

// ---- Output ----

void StreamRun::ReportError(const std::string& file,
                            const absl::Status& status) {
  JsonWriter json;
  json.BeginObject().Key("file").String(file);
  WriteError(status, &json);
  console_.out << json.EndObject().text() << std::endl;
  WriteErrorLine(absl::StrCat(file, ": ", DescribeRpcError(status)), console_);
  SetExit(kExitRpcError);
}

void StreamRun::SetExit(int code) { exit_ = std::max(exit_, code); }

}  // namespace sfmamba::client
