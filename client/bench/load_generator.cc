#include "client/bench/load_generator.h"

#include <algorithm>
#include <chrono>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/proto_duration.h"
#include "client/bench/poisson_arrivals.h"
#include "client/commands/predict.h"
#include "client/rpc/rpc_status.h"

namespace sfmamba::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);

std::string CodeOf(const absl::Status& status) {
  const std::string reason = GetRpcErrorDetails(status).reason;
  const std::string code = absl::StatusCodeToString(status.code());
  return reason.empty() ? code : absl::StrCat(code, " (", reason, ")");
}

// One run. Issues on the thread that calls Run(), hears the answers on gRPC's.
template <typename Request>
class LoadRun {
 public:
  LoadRun(VisionClient& client, const std::vector<Request>& requests,
          const LoadOptions& options,
          const std::function<void(double)>& on_progress)
      : client_(client),
        requests_(requests),
        options_(options),
        on_progress_(on_progress),
        begin_(Clock::now()),
        measured_from_(begin_ + absl::ToChronoNanoseconds(options.warmup)),
        measured_until_(options.requests > 0
                            ? Clock::time_point::max()
                            : measured_from_ +
                                  absl::ToChronoNanoseconds(options.duration)) {
  }

  LoadReport Run() ABSL_LOCKS_EXCLUDED(mu_) {
    if (options_.rate > 0) {
      OpenLoop();
    } else {
      ClosedLoop();
    }
    WaitUntilInFlightIsAtMost(0);
    absl::MutexLock lock(&mu_);
    return Finish();
  }

 private:
  void ClosedLoop() {
    do {
      WaitUntilInFlightIsAtMost(options_.max_in_flight - 1);
    } while (Issue(Clock::now()));
  }

  void OpenLoop() {
    PoissonArrivals arrivals(options_.rate, options_.seed);
    Clock::time_point due;
    do {
      due = begin_ + absl::ToChronoNanoseconds(arrivals.Next());
      SleepUntil(std::min(due, measured_until_));
      WaitUntilInFlightIsAtMost(options_.max_in_flight - 1);
    } while (Issue(due));
  }

  // Sends the request due at `due`; false if the run is over instead.
  bool Issue(Clock::time_point due) ABSL_LOCKS_EXCLUDED(mu_) {
    if (due >= measured_until_) return false;
    if (due >= measured_from_) {
      if (options_.requests > 0 && measured_ == options_.requests) return false;
      ++measured_;
    }
    {
      absl::MutexLock lock(&mu_);
      ++in_flight_;
    }
    const absl::Duration late = absl::FromChrono(Clock::now() - due);
    Predict(client_, requests_[next_++ % requests_.size()],
            options_.deadline - late,
            [this, due](const auto& response) { Done(due, response); });
    return true;
  }

  template <typename Response>
  void Done(Clock::time_point due, const absl::StatusOr<Response>& response)
      ABSL_LOCKS_EXCLUDED(mu_) {
    const Clock::time_point now = Clock::now();
    absl::MutexLock lock(&mu_);
    --in_flight_;
    if (now >= measured_from_ && now < measured_until_) {
      last_measured_ = now;
      if (response.ok()) report_.images += response->results_size();
    }
    if (due < measured_from_) return;
    ++report_.codes[CodeOf(response.status())];
    if (!response.ok()) return;
    report_.latency.Record(absl::FromChrono(now - due));
    AddTiming(response->timing(), response->results_size());
  }

  void AddTiming(const v1::Timing& timing, int images)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    report_.stages.decode += base::FromProto(timing.decode());
    report_.stages.preprocess += base::FromProto(timing.preprocess());
    report_.stages.queue += base::FromProto(timing.queue());
    report_.stages.inference += base::FromProto(timing.inference());
    report_.stages.postprocess += base::FromProto(timing.postprocess());
    report_.stages.total += base::FromProto(timing.total());
    if (timing.batch_size() > 0) {
      batched_images_ += images;
      batches_ += static_cast<double>(images) / timing.batch_size();
    }
  }

  // Turns the sums of report_ into means and rates.
  LoadReport Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    report_.requests = measured_;
    report_.elapsed = absl::FromChrono(
        (options_.requests > 0 ? last_measured_ : measured_until_) -
        measured_from_);
    if (report_.elapsed > absl::ZeroDuration()) {
      report_.images_per_second =
          report_.images / absl::ToDoubleSeconds(report_.elapsed);
    }
    if (batches_ > 0) report_.mean_batch_size = batched_images_ / batches_;
    const int64_t answers = std::max<int64_t>(1, report_.latency.count());
    for (absl::Duration* stage :
         {&report_.stages.decode, &report_.stages.preprocess,
          &report_.stages.queue, &report_.stages.inference,
          &report_.stages.postprocess, &report_.stages.total}) {
      *stage /= answers;
    }
    return report_;
  }

  void WaitUntilInFlightIsAtMost(int limit) ABSL_LOCKS_EXCLUDED(mu_) {
    const auto reached = [this, limit]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return in_flight_ <= limit;
    };
    mu_.Lock();
    while (
        !mu_.AwaitWithTimeout(absl::Condition(&reached), kProgressInterval)) {
      mu_.Unlock();
      ShowProgress();
      mu_.Lock();
    }
    mu_.Unlock();
    ShowProgress();
  }

  void SleepUntil(Clock::time_point time) {
    for (absl::Duration left = absl::FromChrono(time - Clock::now());
         left > absl::ZeroDuration();
         left = absl::FromChrono(time - Clock::now())) {
      absl::SleepFor(std::min(left, kProgressInterval));
      ShowProgress();
    }
  }

  void ShowProgress() {
    const absl::Duration elapsed = absl::FromChrono(Clock::now() - begin_);
    if (elapsed < next_progress_) return;
    next_progress_ = elapsed + kProgressInterval;
    on_progress_(
        options_.requests > 0
            ? static_cast<double>(measured_) / options_.requests
            : absl::FDivDuration(elapsed, options_.warmup + options_.duration));
  }

  VisionClient& client_;
  const std::vector<Request>& requests_;
  const LoadOptions options_;
  const std::function<void(double)>& on_progress_;
  const Clock::time_point begin_;
  const Clock::time_point measured_from_;
  const Clock::time_point measured_until_;

  // Used by the thread of Run() only.
  size_t next_ = 0;
  int measured_ = 0;  // Requests sent after the warm-up.
  absl::Duration next_progress_ = kProgressInterval;

  absl::Mutex mu_;
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  Clock::time_point last_measured_ ABSL_GUARDED_BY(mu_) = measured_from_;
  double batched_images_ ABSL_GUARDED_BY(mu_) = 0;
  double batches_ ABSL_GUARDED_BY(mu_) = 0;  // Shares of a batch, added up.
  LoadReport report_ ABSL_GUARDED_BY(mu_);   // Sums until Finish().
};

}  // namespace

template <typename Request>
LoadReport GenerateLoad(VisionClient& client,
                        const std::vector<Request>& requests,
                        const LoadOptions& options,
                        const std::function<void(double)>& on_progress) {
  return LoadRun<Request>(client, requests, options, on_progress).Run();
}

template LoadReport GenerateLoad(VisionClient&,
                                 const std::vector<v1::ClassifyRequest>&,
                                 const LoadOptions&,
                                 const std::function<void(double)>&);
template LoadReport GenerateLoad(VisionClient&,
                                 const std::vector<v1::DetectRequest>&,
                                 const LoadOptions&,
                                 const std::function<void(double)>&);
template LoadReport GenerateLoad(VisionClient&,
                                 const std::vector<v1::SegmentRequest>&,
                                 const LoadOptions&,
                                 const std::function<void(double)>&);

}  // namespace sfmamba::client
