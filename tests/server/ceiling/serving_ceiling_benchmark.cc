// What serving costs beside the model: the server with a model that answers at
// once, beside a gRPC server that does nothing but answer the same bytes, and
// its transports beside each other. All in processes of their own, with the
// same client, in turn. Run by hand:
//
//   bazel run //tests/server/ceiling:serving_ceiling_benchmark [-- SECONDS
//       [ROUNDS [tensor|transports|refused|jpeg]]]
//
// Beside the rate it prints the processor time that the server and the client
// took for each request. On few processors they share them, so that the rates
// are bounded by their sum. The parts of processor time say what the rates
// would on a machine that does nothing else.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/image/image_input.h"
#include "tests/server/ceiling/echo_server.h"
#include "tests/server/ceiling/load.h"
#include "tests/server/ceiling/null_server.h"
#include "tests/server/ceiling/requests.h"
#include "tests/server/ceiling/server_child.h"

namespace sfmamba {
namespace {

using grpc::StatusCode;

constexpr char kClassify[] = "/sfmamba.v1.VisionService/Classify";
constexpr char kInfer[] = "/inference.GRPCInferenceService/ModelInfer";

struct DecodeRate {
  double per_second;
  double micros;  // Processor time of a picture.
};

// Of all processors that decode and resize.
DecodeRate DecodeAlone(absl::Duration time) {
  const std::string jpeg = Photograph();
  image::ImageSource source;
  source.source = image::EncodedImage{jpeg};
  model::ModelConfig config;
  config.image_size = kNullModelSide;
  std::atomic<int64_t> count{0};
  const absl::Duration before = OwnProcessorTime();
  const absl::Time end = absl::Now() + time;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back([&] {
      for (; absl::Now() < end; ++count) {
        if (!image::MakeInput(source, config, {}, image::ImageLimits()).ok()) {
          std::abort();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {
      count / absl::ToDoubleSeconds(time),
      absl::ToDoubleSeconds(OwnProcessorTime() - before) * 1e6 / count.load()};
}

// How much of what `base` does `rate` is.
void PrintPart(double rate, double base, double micros, double base_micros,
               const char* of) {
  std::printf("  %.0f %% of %s, by processor time %.0f %%\n", 100 * rate / base,
              of, 100 * base_micros / micros);
}

Rate Print(const char* what, const Rate& rate) {
  std::printf(
      "%-34s %9.0f/s  server %6.1f us  client %6.1f us%s\n", what,
      rate.per_second, rate.server_micros, rate.client_micros,
      rate.other > 0 ? absl::StrCat("  others: ", rate.other).c_str() : "");
  std::fflush(stdout);
  return rate;
}

// The servers, and for how long each is asked.
struct Setting {
  const ServerChild& echo;
  const ServerChild& null;
  const ServerChild& full;
  const absl::Duration time;
};

void CompareTensors(const Setting& s) {
  const std::string tensor = TensorRequest();
  const Rate bare =
      Print("echo, 150 kB", LoadOfCalls(s.echo, kClassify, tensor, s.time));
  const Rate served = Print("null model, 150 kB tensor",
                            LoadOfCalls(s.null, kClassify, tensor, s.time));
  PrintPart(served.per_second, bare.per_second, served.micros(), bare.micros(),
            "the echo");
}

void CompareTransports(const Setting& s) {
  const Rate typed =
      Print("sfmamba.v1, 150 kB tensor",
            LoadOfCalls(s.null, kClassify, TensorRequest(), s.time));
  const Rate kserve =
      Print("KServe over gRPC, the same",
            LoadOfCalls(s.null, kInfer, InferRequest(), s.time));
  PrintPart(kserve.per_second, typed.per_second, kserve.micros(),
            typed.micros(), "sfmamba.v1");
  const Rate rest = Print("KServe over REST, binary",
                          LoadOfHttp(s.null, HttpInferRequest(), s.time));
  PrintPart(rest.per_second, typed.per_second, rest.micros(), typed.micros(),
            "sfmamba.v1");
}

void MeasureRefusals(const Setting& s) {
  Print("refused: a field",
        LoadOfCalls(s.null, kClassify, TensorRequest(/*valid=*/false), s.time,
                    StatusCode::INVALID_ARGUMENT));
  Print("refused: queue full",
        LoadOfCalls(s.full, kClassify, TensorRequest(), s.time,
                    StatusCode::RESOURCE_EXHAUSTED));
  Print("refused: queue full, 2 kB",
        LoadOfCalls(s.full, kClassify, SmallRequest(), s.time,
                    StatusCode::RESOURCE_EXHAUSTED));
}

void CompareJpegs(const Setting& s) {
  const std::string jpeg = JpegRequest();
  const DecodeRate alone = DecodeAlone(s.time);
  std::printf("%-34s %9.0f/s  alone  %6.1f us\n", "decode and resize alone",
              alone.per_second, alone.micros);
  const Rate bare =
      Print("echo, 600x400 JPEG", LoadOfCalls(s.echo, kClassify, jpeg, s.time));
  const Rate served = Print("null model, 600x400 JPEG",
                            LoadOfCalls(s.null, kClassify, jpeg, s.time));
  PrintPart(served.per_second, alone.per_second, served.micros(), alone.micros,
            "decode and resize alone");
  PrintPart(served.per_second, 1 / (1 / alone.per_second + 1 / bare.per_second),
            served.micros(), alone.micros + bare.micros(),
            "both one after the other");
}

int Main(int argc, char** argv) {
  const absl::Duration time = absl::Seconds(argc > 1 ? std::atof(argv[1]) : 4);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::string part = argc > 3 ? argv[3] : "";
  const ServerChild echo(ServeEcho);
  const ServerChild null([](const Listening& listening) {
    ServeNullModel(/*stands_still=*/false, listening);
  });
  const ServerChild full([](const Listening& listening) {
    ServeNullModel(/*stands_still=*/true, listening);
  });
  std::printf("processes: echo %d, null model %d, full %d\n", echo.pid(),
              null.pid(), full.pid());
  const Setting setting = {echo, null, full, time};
  const auto runs = [&part](const char* name) {
    return part.empty() || part == name;
  };
  for (int i = 0; i < rounds; ++i) {
    if (runs("tensor")) CompareTensors(setting);
    if (runs("transports")) CompareTransports(setting);
    if (runs("refused")) MeasureRefusals(setting);
    if (runs("jpeg")) CompareJpegs(setting);
  }
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) { return sfmamba::Main(argc, argv); }
