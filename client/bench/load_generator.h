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
  absl::Duration deadline = absl::Seconds(10);  // From when it is due.
  int class_index = 0;                          // Into Load::class_names.
};

struct Load {
  std::vector<LoadRequest> requests;
  std::vector<std::string> class_names = {"all"};
  // When to send which of `requests`, by time: an open loop, which never waits
  // for answers. Empty: a closed loop, which sends a request whenever one has
  // ended, taking turns; after UNAVAILABLE it pauses, see UnavailablePause.
  std::vector<Trace::Arrival> arrivals;
};

struct LoadOptions {
  int threads = 1;       // Sending threads.
  int concurrency = 16;  // Requests in flight at a time, in a closed loop.
  // In an open loop, a request that would exceed this is not sent and is
  // counted as that.
  int max_in_flight = 1 << 16;
  absl::Duration warmup = absl::Seconds(1);  // Load before, not measured.
  // How long to measure. Infinite: an open loop ends with its arrivals and a
  // closed loop after `requests`.
  absl::Duration duration = absl::Seconds(10);
  int requests = 0;  // Number to measure in a closed loop. 0: no limit.
};

// Sends the load and waits for the last answer. Request i goes to client i
// modulo their number, sent by thread i modulo theirs (in a closed loop: by any
// thread). `on_progress` gets the part done, 0..1, a few times a second, on
// this thread.
LoadReport GenerateLoad(
    const std::vector<std::unique_ptr<VisionClient>>& clients, const Load& load,
    const LoadOptions& options, const std::function<void(double)>& on_progress);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_BENCH_LOAD_GENERATOR_H_
