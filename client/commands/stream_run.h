#ifndef SFMAMBA_CLIENT_COMMANDS_STREAM_RUN_H_
#define SFMAMBA_CLIENT_COMMANDS_STREAM_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/commands/command.h"
#include "client/commands/picture_source.h"
#include "client/rpc/patience.h"
#include "client/rpc/predict_stream.h"
#include "client/rpc/vision_client.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

struct StreamOptions {
  v1::StreamConfig config;
  absl::Duration deadline;
  std::string method;  // The key of the answer in its line of JSON.
  // Makes the request for a picture's bytes.
  std::function<v1::StreamPredictRequest(std::string picture)> message;
};

// Sends pictures over one StreamPredict call. Writes a line of JSON for each
// picture when its answer arrives. If the call ends early because the server
// drains or cannot be reached, another call sends the unanswered pictures
// again.
//
// One thread reads pictures. Each call has a thread that sends, and a thread
// that ends the call if no answer arrives in time. The caller's thread
// receives.
class StreamRun {
 public:
  // All arguments must outlive the StreamRun.
  StreamRun(const StreamOptions& options, PictureSource* pictures,
            VisionClient* client, const Console& console)
      : options_(options),
        pictures_(*pictures),
        client_(*client),
        console_(console) {}

  // Returns the exit code. May be called only once.
  int Run();

 private:
  struct Picture {
    std::string file;
    std::shared_ptr<const v1::StreamPredictRequest> message;
  };

  // Runs in a thread. Reads pictures until all are read or no more are wanted.
  void ReadAll() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for a picture to send. Returns false if all pictures are answered.
  bool AwaitPicture() ABSL_LOCKS_EXCLUDED(mu_);

  // Makes one call and returns its status.
  absl::Status RunCall() ABSL_LOCKS_EXCLUDED(mu_);
  void SendAll(PredictStream* stream) ABSL_LOCKS_EXCLUDED(mu_);
  void EndIfNothingComes(PredictStream* stream) ABSL_LOCKS_EXCLUDED(mu_);
  void Take(const v1::StreamPredictResponse& answer) ABSL_LOCKS_EXCLUDED(mu_);

  // `status` is the status of a call that has ended. Returns OK if the next
  // call may begin at once. Otherwise returns why the remaining pictures were
  // not answered.
  absl::Status WhatFailed(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits before the next call. Returns false if there must not be another
  // call.
  bool WaitAfter(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if a sent picture is not answered yet.
  bool Asks() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportError(const std::string& file, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sets the exit code to `code` unless it is already larger.
  void SetExit(int code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const StreamOptions& options_;
  PictureSource& pictures_;
  VisionClient& client_;
  const Console& console_;

  absl::Mutex mu_;
  int64_t taken_ ABSL_GUARDED_BY(mu_) = 0;  // Pictures named by the source.
  bool all_read_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;  // No more pictures are wanted.
  // Pictures that are read and not yet answered, by correlation ID.
  std::map<int64_t, Picture> open_ ABSL_GUARDED_BY(mu_);
  Patience patience_ ABSL_GUARDED_BY(mu_){3};
  // True if the current wait was reported to the user.
  bool waits_ ABSL_GUARDED_BY(mu_) = false;
  int exit_ ABSL_GUARDED_BY(mu_) = kExitOk;

  // The members below belong to the current call.
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;  // The first picture not sent.
  bool takes_requests_ ABSL_GUARDED_BY(mu_) = true;
  bool answered_ ABSL_GUARDED_BY(mu_) = false;  // A picture was answered.
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  bool timed_out_ ABSL_GUARDED_BY(mu_) = false;
  // The error with which the server temporarily refused a picture, or OK.
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  absl::Time progress_ ABSL_GUARDED_BY(mu_);  // Last answer or request.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_STREAM_RUN_H_
