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
  // What to send.
  std::string method = "classify";
  std::string model;
  std::string tensor;
  bool resize = false;
  int images = 1;
  std::string priority;
  int seed = 1;
  // When.
  int concurrency = 16;
  ArrivalOptions arrivals;
  std::string trace;
  std::string pictures;
  double speed = 1;
  std::string write_trace;
  // How long.
  absl::Duration duration = absl::Seconds(10);
  int requests = 0;
  absl::Duration warmup = absl::Seconds(1);
  // How.
  int threads = 1;
  int channels = 1;
  int max_in_flight = 1 << 16;
  bool retry = false;

  void AddTo(FlagSet* flags);

  bool open_loop() const { return arrivals.rate > 0 || !trace.empty(); }

  // INVALID_ARGUMENT names the first flag that is wrong by itself or beside
  // others; `files` are the arguments.
  absl::Status Check(const std::vector<std::string>& files) const;

  LoadOptions ToLoadOptions() const;

  // What the flags describe where they name no trace: requests of
  // `images` pictures each, so that every picture begins one, and in an open
  // loop when they arrive.
  Trace MakeTrace(const std::vector<std::string>& files) const;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_BENCH_BENCH_FLAGS_H_
