#ifndef SFMAMBA_CLIENT_BENCH_LOAD_GENERATOR_H_
#define SFMAMBA_CLIENT_BENCH_LOAD_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/bench/latency_histogram.h"
#include "client/rpc/vision_client.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

struct LoadOptions {
  // Requests per second, arriving as a Poisson process whatever the server does
  // (an open loop). 0: a new request whenever one has ended (a closed loop).
  double rate = 0;
  uint64_t seed = 1;  // Of the arrivals.
  // In a closed loop there are always so many in flight. In an open loop a
  // request that would be one too many waits here, and its latency and deadline
  // run.
  int max_in_flight = 16;
  int requests = 0;  // To measure. 0: as many as `duration` allows.
  absl::Duration duration = absl::Seconds(10);
  absl::Duration warmup = absl::Seconds(1);     // Load before, not measured.
  absl::Duration deadline = absl::Seconds(10);  // Of a request.
};

// Mean over the answers, each of which tells its slowest image's time.
struct StageMeans {
  absl::Duration decode;
  absl::Duration preprocess;
  absl::Duration queue;
  absl::Duration inference;
  absl::Duration postprocess;
  absl::Duration total;
};

struct LoadReport {
  absl::Duration elapsed;  // From the end of the warm-up.
  int64_t requests = 0;    // Sent after the warm-up.
  int64_t images = 0;      // Answered with OK during `elapsed`.
  double images_per_second = 0;
  LatencyHistogram latency;  // Of OK answers, from when the request was due.
  std::map<std::string, int64_t> codes;  // "OK", "UNAVAILABLE (DRAINING)".
  double mean_batch_size = 0;  // Over batches. 0: the server did not tell.
  StageMeans stages;
};

// Sends `requests` in turn, over and over, and waits for the last answer.
// `on_progress` gets the part done, 0..1, a few times a second, on this thread.
// Request is v1::ClassifyRequest, DetectRequest or SegmentRequest.
template <typename Request>
LoadReport GenerateLoad(VisionClient& client,
                        const std::vector<Request>& requests,
                        const LoadOptions& options,
                        const std::function<void(double)>& on_progress);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_LOAD_GENERATOR_H_
