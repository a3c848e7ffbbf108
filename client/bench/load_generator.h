#ifndef SFMAMBA_CLIENT_BENCH_LOAD_GENERATOR_H_
#define SFMAMBA_CLIENT_BENCH_LOAD_GENERATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/variant.h"
#include "client/bench/load_report.h"
#include "client/bench/trace.h"
#include "client/rpc/vision_client.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

struct LoadRequest {
  absl::variant<v1::ClassifyRequest, v1::DetectRequest, v1::SegmentRequest>
      message;
  // The deadline is counted from when the request is due.
  absl::Duration deadline = absl::Seconds(10);
  // The index of the request's class in Load::class_names.
  int class_index = 0;
};

struct Load {
  std::vector<LoadRequest> requests;
  std::vector<std::string> class_names = {"all"};
  // The times at which requests are sent, in order. If not empty, the load is
  // an open loop, which never waits for answers. If empty, the load is a closed
  // loop, which sends the next request whenever one has ended. A closed loop
  // uses all requests in turn, and pauses after UNAVAILABLE (see
  // UnavailablePause).
  std::vector<Trace::Arrival> arrivals;
};

struct LoadOptions {
  int threads = 1;       // The number of threads that send.
  int concurrency = 16;  // In a closed loop, requests in flight at a time.
  // The maximum number of requests in flight in an open loop. Further requests
  // are not sent and are counted as `over_cap`.
  int max_in_flight = 1 << 16;
  // How long the load runs before the measurement begins.
  absl::Duration warmup = absl::Seconds(1);
  // How long to measure. If infinite, an open loop ends with its arrivals, and
  // a closed loop ends after `requests`.
  absl::Duration duration = absl::Seconds(10);
  // The number of requests to measure in a closed loop. 0 means no limit.
  int requests = 0;
};

// Sends the load and returns after the last answer. Request i is sent by client
// i modulo the number of clients. In an open loop, thread i modulo the number
// of threads sends it. In a closed loop, any thread does. `on_progress` is
// called a few times a second on the calling thread, with the fraction done,
// 0..1.
LoadReport GenerateLoad(
    const std::vector<std::unique_ptr<VisionClient>>& clients, const Load& load,
    const LoadOptions& options, const std::function<void(double)>& on_progress);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_LOAD_GENERATOR_H_
