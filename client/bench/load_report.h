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

// The numbers of requests that were due after the warm-up, by outcome, for one
// class or for all classes. These sums hold:
//   requests = over_cap + missed + sent
//   sent = in_time + late + failed
struct RequestCounts {
  // If empty, the counts are for all classes.
  std::string class_name;
  int64_t requests = 0;
  int64_t over_cap = 0;  // Not sent, because too many requests were in flight.
  int64_t missed = 0;    // Not sent, because the deadline had passed.
  int64_t sent = 0;
  int64_t in_time = 0;  // OK, and received by the deadline.
  int64_t late = 0;     // OK, and received after the deadline.
  int64_t failed = 0;   // Ended with any other status.
  // Number of sent requests by answer, for example "OK" or "UNAVAILABLE
  // (DRAINING)".
  std::map<std::string, int64_t> codes;
  // Latencies of the requests answered in time. `latency` is measured from when
  // a request was due, so it includes the delay of a late sender.
  // `latency_from_sending` is measured from when the request was sent.
  LatencyHistogram latency;
  LatencyHistogram latency_from_sending;

  void Add(const RequestCounts& other);
};

// Mean times over the OK answers. Each answer contains the times of its slowest
// image.
struct StageMeans {
  absl::Duration decode;
  absl::Duration preprocess;
  absl::Duration queue;
  absl::Duration inference;
  absl::Duration postprocess;
  absl::Duration total;
};

struct LoadReport {
  // The measured time. It begins at the end of the warm-up. It ends with the
  // load's duration, or with the last answer if a number of requests was given.
  absl::Duration elapsed;
  RequestCounts all;
  // The counts of each class, in the order of Load::class_names. Empty if there
  // is only one class.
  std::vector<RequestCounts> classes;
  int64_t images = 0;  // Images in OK answers received during `elapsed`.
  double images_per_second = 0;
  // Requests per second that were answered in time. An answer counts if it
  // arrived during `elapsed`.
  double goodput = 0;
  // The delays from when a request was due to when it was sent.
  LatencyHistogram delay;
  int64_t peak_in_flight = 0;
  // The mean over all batches. It is 0 if the server does not report batch
  // sizes.
  double mean_batch_size = 0;
  StageMeans stages;
};

// A request that was sent, and its answer. Times are counted from the start of
// the load.
struct SentRequest {
  int class_index = 0;
  absl::Duration due;
  absl::Duration sent;
  absl::Duration received;
  absl::Duration deadline;  // Counted from `due`.
  absl::Status status;
  int images = 0;  // Images in the answer.
  // The timing in the answer, or null if there is none.
  const v1::Timing* timing = nullptr;
};

// Counts requests by outcome. Does not read a clock. Not thread-safe.
class LoadTally {
 public:
  // Requests that are due before `measured_from` are not counted. Rates count
  // the answers that are received from `measured_from` to `measured_until`.
  LoadTally(const std::vector<std::string>& class_names,
            absl::Duration measured_from, absl::Duration measured_until);

  void CountSent(const SentRequest& request);
  void CountOverCap(int class_index, absl::Duration due);
  void CountMissed(int class_index, absl::Duration due);
  void CountInFlight(int64_t in_flight);

  // Returns the report. If `until_last_answer` is true, rates are computed over
  // the time until the last answer. If it is false, they are computed over the
  // time until `measured_until`.
  LoadReport Report(bool until_last_answer) const;

 private:
  void AddTiming(const v1::Timing& timing, int images);
  // Counts a request that was due at `due`, and returns the counts of its
  // class. During the warm-up, returns counts that are never reported.
  RequestCounts& CountsOf(int class_index, absl::Duration due);

  const absl::Duration measured_from_;
  const absl::Duration measured_until_;
  std::vector<RequestCounts> classes_;
  RequestCounts warmup_;
  absl::Duration last_answer_;
  int64_t in_time_ = 0;  // Answers in time, received during the measured time.
  double batched_images_ = 0;
  double batches_ = 0;  // Each answer adds its fraction of a batch.
  int64_t timings_ = 0;
  LoadReport report_;  // Contains sums in place of means and rates.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_LOAD_REPORT_H_
