#include "client/commands/bench/bench_command.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/bench/load_generator.h"
#include "client/bench/trace.h"
#include "client/commands/bench/bench_flags.h"
#include "client/commands/bench/bench_inputs.h"
#include "client/commands/bench/bench_output.h"
#include "client/commands/inputs.h"
#include "client/commands/output/progress_bar.h"

namespace sfmamba::client {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

// Returns the trace in the file of --trace, or the trace that the other flags
// describe. Returns INVALID_ARGUMENT or NOT_FOUND with the name of the wrong
// flag or file.
absl::StatusOr<Trace> GetTrace(const BenchFlags& flags,
                               const std::vector<std::string>& files) {
  if (flags.trace.empty()) return flags.MakeTrace(files);
  const absl::StatusOr<std::string> text = ReadFile(flags.trace);
  if (!text.ok()) return text.status();
  absl::StatusOr<Trace> trace = ParseTrace(*text);
  if (!trace.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.trace, ": ", trace.status().message()));
  }
  for (Trace::Arrival& arrival : trace->arrivals) arrival.at /= flags.speed;
  if (trace->arrivals.empty() || trace->arrivals.back().at < flags.warmup) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.trace, ": nothing is due after --warmup=",
                     absl::FormatDuration(flags.warmup)));
  }
  return trace;
}

// Writes the trace to the file. Returns INVALID_ARGUMENT if a picture's name
// has a comma, tab or newline, which a trace cannot contain. Returns
// UNAVAILABLE if the file cannot be written.
absl::Status WriteTrace(const Trace& trace, const std::string& path) {
  for (const TraceRequest& request : trace.requests) {
    for (const std::string& picture : request.pictures) {
      if (picture.find_first_of(",\t\r\n") != std::string::npos) {
        return absl::InvalidArgumentError(
            absl::StrCat("no trace can name '", picture,
                         "': it has a comma, tab or newline"));
      }
    }
  }
  return SaveFile(path, FormatTrace(trace));
}

// Returns a connected client for each channel.
absl::StatusOr<std::vector<std::unique_ptr<VisionClient>>> Connect(
    const BenchFlags& flags) {
  VisionClientOptions options = flags.common.client;
  options.share_connections = false;
  // By default, bench does not retry, unlike other commands. So client and
  // server count the same requests.
  options.retry = flags.retry;
  std::vector<std::unique_ptr<VisionClient>> clients;
  for (int i = 0; i < flags.channels; ++i) {
    clients.push_back(
        std::make_unique<VisionClient>(flags.common.server, options));
    const absl::Status status = clients.back()->Connect(kConnectTimeout);
    if (!status.ok()) return status;
  }
  return clients;
}

}  // namespace

int RunBench(const std::vector<std::string>& arguments,
             const Console& console) {
  BenchFlags flags;
  FlagSet flag_set(
      "sfmamba bench (FILE... | --tensor=fp32|uint8 | --trace=FILE) [flags]",
      "Loads the server and measures it. A closed loop (the default) finds "
      "what it\n"
      "can do; an open loop (--rate, --trace) what callers see: it never waits "
      "for\n"
      "answers, and latency counts from when each request was due, so that a "
      "slow\n"
      "server cannot hide behind waiting callers.");
  flags.AddTo(&flag_set);
  std::vector<std::string> files;
  if (const auto exit = ParseArguments(&flag_set, arguments, &files, console)) {
    return *exit;
  }
  absl::Status status = flags.Check(files);
  if (!status.ok()) return UsageError(status.message(), console);
  const absl::StatusOr<Trace> trace = GetTrace(flags, files);
  if (!trace.ok()) return UsageError(trace.status().message(), console);
  if (!flags.write_trace.empty()) {
    status = WriteTrace(*trace, flags.write_trace);
    return status.ok() ? kExitOk : UsageError(status.message(), console);
  }

  TracePictures pictures;
  status = ReadPictures(*trace, flags.pictures, &pictures);
  if (!status.ok()) return UsageError(status.message(), console);
  const auto clients = Connect(flags);
  if (!clients.ok()) return RpcError(clients.status(), flags.common, console);
  if (flags.resize) {
    status = ResizePictures(kConnectTimeout, clients->front().get(), &pictures);
    if (!status.ok()) return RpcError(status, flags.common, console);
  }
  status = MakeTensors(*trace, flags.seed, kConnectTimeout,
                       clients->front().get(), &pictures);
  if (!status.ok()) return RpcError(status, flags.common, console);

  ProgressBar progress(console.err, console.show_progress);
  const LoadReport report =
      GenerateLoad(*clients, MakeLoad(*trace, pictures, flags.common.deadline),
                   flags.ToLoadOptions(),
                   [&](double fraction) { progress.Show(fraction, "bench"); });
  console.out << (flags.common.json ? BenchJson(report, flags)
                                    : BenchText(report, flags));
  return report.all.codes.count("OK") > 0 ? kExitOk : kExitRpcError;
}

}  // namespace sfmamba::client
