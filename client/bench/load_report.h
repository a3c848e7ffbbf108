#ifndef SFMAMBA_CLIENT_BENCH_LOAD_REPORT_H_
#define SFMAMBA_CLIENT_BENCH_LOAD_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/bench/latency_histogram.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// What became of the requests that were due after the warm-up, or of those of
// one class:
//   requests = over_cap + missed + sent,  sent = in_time + late + failed
struct RequestCounts {
  std::string class_name;  // Empty: all classes.
  int64_t requests = 0;
  int64_t over_cap = 0;  // Not sent: too many were in flight.
  int64_t missed = 0;    // Not sent: the sender was later than the deadline.
  int64_t sent = 0;
  int64_t in_time = 0;  // OK, and received by the deadline.
  int64_t late = 0;     // OK, and received after the deadline.
  int64_t failed = 0;   // Any other status.
  // Sent requests by answer: "OK", "UNAVAILABLE (DRAINING)".
  std::map<std::string, int64_t> codes;
  // Latencies of the requests answered in time. The first runs from when a
  // request was due, so it includes the delay of a late sender; the second runs
  // from when it was sent.
  LatencyHistogram latency;
  LatencyHistogram latency_from_sending;

  void Add(const RequestCounts& other);
};

// Mean over the OK answers, each of which tells its slowest image's time.
struct StageMeans {
  absl::Duration decode;
  absl::Duration preprocess;
  absl::Duration queue;
  absl::Duration inference;
  absl::Duration postprocess;
  absl::Duration total;
};

struct LoadReport {
  // From the end of the warm-up to the end of the duration, or to the last
  // answer where the number of requests was given.
  absl::Duration elapsed;
  RequestCounts all;
  std::vector<RequestCounts> classes;  // In the given order; empty if only one.
  int64_t images = 0;                  // Received with OK during `elapsed`.
  double images_per_second = 0;
  double goodput = 0;      // Requests a second that were answered in time,
                           // counted when the answers came during `elapsed`.
  LatencyHistogram delay;  // From when a request was due until it was sent.
  int64_t peak_in_flight = 0;
  double mean_batch_size = 0;  // Over batches. 0: the server did not tell.
  StageMeans stages;
};

// A request that was sent, and what came back. Times count from the start of
// the load.
struct SentRequest {
  int class_index = 0;
  absl::Duration due;
  absl::Duration sent;
  absl::Duration received;
  absl::Duration deadline;  // Allowed from `due` on.
  absl::Status status;
  int images = 0;                      // In the answer, as is the next.
  const v1::Timing* timing = nullptr;  // Null: none.
};

// Counts what becomes of requests. Has no clock. Not thread-safe.
class LoadTally {
 public:
  // What is due before `measured_from` is not counted; rates count what is
  // received from then until `measured_until`.
  LoadTally(const std::vector<std::string>& class_names,
            absl::Duration measured_from, absl::Duration measured_until);

  void CountSent(const SentRequest& request);
  void CountOverCap(int class_index, absl::Duration due);
  void CountMissed(int class_index, absl::Duration due);
  void CountInFlight(int64_t in_flight);

  // `until_last_answer`: rates are over the time until then.
  LoadReport Report(bool until_last_answer) const;

 private:
  void AddTiming(const v1::Timing& timing, int images);
  // The counts of a class, or a place to forget what the warm-up counts.
  RequestCounts& CountsOf(int class_index, absl::Duration due);

  const absl::Duration measured_from_;
  const absl::Duration measured_until_;
  std::vector<RequestCounts> classes_;
  RequestCounts warmup_;
  absl::Duration last_answer_;
  int64_t in_time_ = 0;  // Received during the measured time.
  double batched_images_ = 0;
  double batches_ = 0;  // Shares of a batch, added up.
  int64_t timings_ = 0;
  LoadReport report_;  // Sums where the report has means and rates.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_LOAD_REPORT_H_
