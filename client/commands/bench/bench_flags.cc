#include "client/commands/bench/bench_flags.h"

#include "absl/strings/str_cat.h"

namespace sfmamba::client {
namespace {

// Limits memory. An arrival takes 24 bytes.
constexpr double kMaxArrivals = 2e7;

// Returns INVALID_ARGUMENT with the first text that is not empty. Returns OK if
// all texts are empty.
absl::Status FirstOf(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    if (!problem.empty()) return absl::InvalidArgumentError(problem);
  }
  return absl::OkStatus();
}

std::string Unless(bool right, absl::string_view problem) {
  return right ? "" : std::string(problem);
}

}  // namespace

void BenchFlags::AddTo(FlagSet* flags) {
  common.AddTo(flags);
  flags->Add("method", "classify|detect|segment",
             "what to ask for (of detect: boxes and masks)", &method);
  flags->Add("model", "NAME",
             "model to ask; empty: the server's only or default one", &model);
  flags->Add("tensor", "fp32|uint8",
             "send random preprocessed tensors instead of files", &tensor);
  flags->Add("resize", "",
             "resize files for their classifier once, before they are sent",
             &resize);
  flags->Add("images", "N", "images a request", &images);
  flags->Add("priority", "high|normal|low", "of the requests; empty: none said",
             &priority);
  flags->Add("seed", "N", "of the arrivals and the tensors", &seed);
  flags->Add("concurrency", "N", "closed loop: requests in flight",
             &concurrency);
  flags->Add("rate", "R",
             "open loop: R requests a second on average, Poisson; 0: closed "
             "loop",
             &arrivals.rate);
  flags->Add("burst_factor", "F",
             "open loop: bursts at F times the rate, then nothing until the "
             "period ends; 1: none",
             &arrivals.burst_factor);
  flags->Add("burst_period", "DURATION", "from one burst to the next",
             &arrivals.burst_period);
  flags->Add("trace", "FILE",
             "open loop: send what FILE says, to its end, in place of files",
             &trace);
  flags->Add("pictures", "DIR", "where a trace's relative file names begin",
             &pictures);
  flags->Add("speed", "X", "send a trace X times as fast", &speed);
  flags->Add("write_trace", "FILE",
             "write what would be sent to FILE instead of sending it",
             &write_trace);
  flags->Add("duration", "DURATION", "how long to measure", &duration);
  flags->Add("requests", "N", "how many to measure instead; 0: by duration",
             &requests);
  flags->Add("warmup", "DURATION", "load before, not measured; of a trace too",
             &warmup);
  flags->Add("threads", "N", "threads that send", &threads);
  flags->Add("channels", "N", "connections, each of its own", &channels);
  flags->Add("max_in_flight", "N",
             "open loop: what would be one more is not sent, and counted",
             &max_in_flight);
  flags->Add("retry", "",
             "try again after UNAVAILABLE and wait for a server that restarts, "
             "as other verbs do",
             &retry);
}

absl::Status BenchFlags::Check(const std::vector<std::string>& files) const {
  v1::RequestOptions::Priority unused;
  const bool from_trace = !trace.empty();
  return FirstOf({
      Unless(method == "classify" || method == "detect" || method == "segment",
             absl::StrCat("--method: expected classify, detect or segment, "
                          "got '",
                          method, "'")),
      Unless(
          tensor.empty() || tensor == "fp32" || tensor == "uint8",
          absl::StrCat("--tensor: expected fp32 or uint8, got '", tensor, "'")),
      Unless(!resize || (method == "classify" && tensor.empty()),
             "--resize: expected files for --method=classify"),
      Unless(priority.empty() ||
                 (priority != "-" && ParsePriority(priority, &unused).ok()),
             absl::StrCat("--priority: expected high, normal or low, got '",
                          priority, "'")),
      Unless(common.deadline > absl::ZeroDuration(),
             "--deadline: expected more than 0"),
      Unless(images >= 1 && images <= 64, "--images: expected 1 to 64"),
      Unless(concurrency >= 1, "--concurrency: expected 1 or more"),
      Unless(arrivals.rate >= 0, "--rate: expected 0 or more"),
      Unless(arrivals.burst_factor >= 1, "--burst_factor: expected 1 or more"),
      Unless(arrivals.burst_period > absl::ZeroDuration() &&
                 arrivals.burst_period < absl::InfiniteDuration(),
             "--burst_period: expected more than 0"),
      Unless(arrivals.burst_factor == 1 || arrivals.rate > 0,
             "--burst_factor needs --rate"),
      Unless(speed > 0, "--speed: expected more than 0"),
      Unless(speed == 1 || from_trace, "--speed needs --trace"),
      Unless(requests >= 0, "--requests: expected 0 or more"),
      Unless(duration > absl::ZeroDuration() &&
                 duration < absl::InfiniteDuration(),
             "--duration: expected more than 0"),
      Unless(
          warmup >= absl::ZeroDuration() && warmup < absl::InfiniteDuration(),
          "--warmup: expected 0 or more"),
      Unless(threads >= 1 && threads <= 256, "--threads: expected 1 to 256"),
      Unless(channels >= 1 && channels <= 4096,
             "--channels: expected 1 to 4096"),
      Unless(max_in_flight >= 1, "--max_in_flight: expected 1 or more"),
      Unless(arrivals.rate * absl::ToDoubleSeconds(warmup + duration) <=
                 kMaxArrivals,
             "--rate and --duration: expected at most 20 million requests"),
      Unless(!from_trace || arrivals.rate == 0,
             "--trace says when to send; --rate does too"),
      Unless(!from_trace || write_trace.empty(),
             "--write_trace: there is a trace already"),
      Unless(write_trace.empty() || arrivals.rate > 0,
             "--write_trace needs --rate"),
      Unless((files.empty() ? 0 : 1) + (tensor.empty() ? 0 : 1) +
                     (from_trace ? 1 : 0) ==
                 1,
             "bench needs either files, --tensor or --trace"),
  });
}

LoadOptions BenchFlags::ToLoadOptions() const {
  LoadOptions options;
  options.threads = threads;
  options.concurrency = concurrency;
  options.max_in_flight = max_in_flight;
  options.warmup = warmup;
  options.requests = requests;
  options.duration =
      requests > 0 || !trace.empty() ? absl::InfiniteDuration() : duration;
  return options;
}

Trace BenchFlags::MakeTrace(const std::vector<std::string>& files) const {
  TraceRequest request;
  request.method = method;
  request.model = model;
  request.deadline = common.deadline;
  if (!priority.empty()) {
    // Check() has already reported any error.
    ParsePriority(priority, &request.priority).IgnoreError();
  }
  request.class_name = DefaultClassName(request);
  const std::vector<std::string> names =
      tensor.empty()
          ? files
          : std::vector<std::string>{absl::StrCat("tensor:", tensor)};
  Trace trace;
  for (size_t i = 0; i < names.size(); ++i) {
    request.pictures.clear();
    for (int k = 0; k < images; ++k) {
      request.pictures.push_back(names[(i + k) % names.size()]);
    }
    trace.requests.push_back(request);
  }
  if (arrivals.rate == 0) return trace;

  ArrivalOptions options = arrivals;
  options.seed = seed;
  ArrivalProcess process(options);
  int measured = 0;
  for (absl::Duration at = process.Next();
       requests > 0 ? measured < requests : at < warmup + duration;
       at = process.Next()) {
    measured += at >= warmup;
    trace.arrivals.push_back(
        {at, static_cast<int>(trace.arrivals.size() % names.size())});
  }
  return trace;
}

}  // namespace sfmamba::client
