#ifndef SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_FLAGS_H_
#define SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/bench/arrival_process.h"
#include "client/bench/load_generator.h"
#include "client/bench/trace.h"
#include "client/commands/command.h"

namespace sfmamba::client {

// The flags of `sfmamba bench`.
struct BenchFlags {
  CommonFlags common;
  // These flags say what to send.
  std::string method = "classify";
  std::string model;
  std::string tensor;
  bool resize = false;
  int images = 1;
  std::string priority;
  int seed = 1;
  // These flags say when to send requests.
  int concurrency = 16;
  ArrivalOptions arrivals;
  std::string trace;
  std::string pictures;
  double speed = 1;
  std::string write_trace;
  // These flags say how long to send and measure.
  absl::Duration duration = absl::Seconds(10);
  int requests = 0;
  absl::Duration warmup = absl::Seconds(1);
  // These flags say how to send.
  int threads = 1;
  int channels = 1;
  int max_in_flight = 1 << 16;
  bool retry = false;

  void AddTo(FlagSet* flags);

  bool open_loop() const { return arrivals.rate > 0 || !trace.empty(); }

  // Returns INVALID_ARGUMENT with the name of the first flag that is wrong,
  // alone or in combination with others. `files` are the arguments that are not
  // flags.
  absl::Status Check(const std::vector<std::string>& files) const;

  LoadOptions ToLoadOptions() const;

  // Returns the trace that the flags describe if they do not name a trace file.
  // The trace has one request for each file. A request contains `images`
  // pictures: its own file, and then the files that follow it in `files`. After
  // the last file, the first file follows. If `tensor` is set, the trace has
  // one request with `images` tensors. For an open loop, the trace also
  // contains the times at which requests are sent.
  Trace MakeTrace(const std::vector<std::string>& files) const;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_FLAGS_H_
