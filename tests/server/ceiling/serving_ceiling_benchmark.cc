// Measures the cost of serving, without the cost of the model. The benchmark
// compares two servers. The first is the real server, whose model answers at
// once. The second is a gRPC server that only returns the same bytes (`echo`).
// The benchmark also compares the transports of the real server. Each server
// runs in its own process. One client loads one server after another. Run the
// benchmark by hand:
//
//   bazel run //tests/server/ceiling:serving_ceiling_benchmark [-- SECONDS
//       [ROUNDS [tensor|transports|refused|jpeg|WIDTHxHEIGHT [apart]]]]
//
// The part `jpeg` sends pictures of several sizes, because users' photographs
// are mostly larger than a model's input. The part WIDTHxHEIGHT sends pictures
// of this size only. Both parts also measure how fast pictures are decoded
// without a server. Both parts load two real servers:
// - The model of the first server answers at once, so every picture is a batch.
// - The model of the second server sleeps for 2 ms per batch, like a CPU thread
//   that waits for a GPU. Its batches are therefore larger.
//
// For each server, the benchmark prints the rate and the CPU times of the
// server and of the client for each request. If server and client share few
// CPUs, the sum of both CPU times limits the rate. The ratio of the CPU times
// of two servers shows what the ratio of their rates would be on a machine
// without other work.
//
// If the argument `apart` is given, the servers use the first half of the CPUs,
// and the client uses the other CPUs. Decoding without a server also uses the
// first half. The CPUs of the servers then limit the rate.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/server/ceiling/decode_alone.h"
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
// The time of a batch of the slow null model.
constexpr absl::Duration kBatchTime = absl::Milliseconds(2);

// Returns the result of `run` on a thread restricted to these CPUs. The
// restriction also applies to threads that it starts.
template <typename Run>
auto On(Processors processors, const Run& run) -> decltype(run()) {
  decltype(run()) result;
  std::thread([&] {
    RunOn(processors);
    result = run();
  }).join();
  return result;
}

// Prints `rate` as a percentage of `base`.
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

// The servers, and the time of each measurement.
struct Setting {
  const ServerChild& echo;
  const ServerChild& decoding_echo;
  const ServerChild& null;
  const ServerChild& timed;
  const ServerChild& full;
  const Processors servers, clients;
  const absl::Duration time;

  // Calls `method` of `server` from the client's CPUs.
  Rate Ask(const ServerChild& server, const char* method,
           const std::string& message, StatusCode code = StatusCode::OK) const {
    return On(clients,
              [&] { return LoadOfCalls(server, method, message, time, code); });
  }
};

void CompareTensors(const Setting& s) {
  const std::string tensor = TensorRequest();
  const Rate bare = Print("echo, 150 kB", s.Ask(s.echo, kClassify, tensor));
  const Rate served =
      Print("null model, 150 kB tensor", s.Ask(s.null, kClassify, tensor));
  PrintPart(served.per_second, bare.per_second, served.micros(), bare.micros(),
            "the echo");
}

void CompareTransports(const Setting& s) {
  const Rate typed = Print("sfmamba.v1, 150 kB tensor",
                           s.Ask(s.null, kClassify, TensorRequest()));
  const Rate kserve = Print("KServe over gRPC, the same",
                            s.Ask(s.null, kInfer, InferRequest()));
  PrintPart(kserve.per_second, typed.per_second, kserve.micros(),
            typed.micros(), "sfmamba.v1");
  const Rate rest =
      Print("KServe over REST, binary", On(s.clients, [&s] {
              return LoadOfHttp(s.null, HttpInferRequest(), s.time);
            }));
  PrintPart(rest.per_second, typed.per_second, rest.micros(), typed.micros(),
            "sfmamba.v1");
}

void MeasureRefusals(const Setting& s) {
  Print("refused: a field",
        s.Ask(s.null, kClassify, TensorRequest(/*valid=*/false),
              StatusCode::INVALID_ARGUMENT));
  Print("refused: queue full", s.Ask(s.full, kClassify, TensorRequest(),
                                     StatusCode::RESOURCE_EXHAUSTED));
  Print("refused: queue full, 2 kB", s.Ask(s.full, kClassify, SmallRequest(),
                                           StatusCode::RESOURCE_EXHAUSTED));
}

struct Size {
  int width, height;
};
constexpr Size kPhotographs[] = {{600, 400}, {1280, 853}, {4000, 3000}};

void CompareJpegs(const Setting& s, const Size& size) {
  const std::string picture = Photograph(size.width, size.height);
  const std::string jpeg = JpegRequest(size.width, size.height);
  std::printf("JPEG of %dx%d, %d kB\n", size.width, size.height,
              static_cast<int>(picture.size() / 1000));
  const DecodeRate alone =
      On(s.servers, [&] { return DecodeAlone(picture, s.time); });
  std::printf("%-34s %9.0f/s  alone  %6.1f us\n", "decode and resize alone",
              alone.per_second, alone.micros);
  const Rate bare = Print("echo", s.Ask(s.echo, kClassify, jpeg));
  const Rate least = Print("echo that decodes and resizes",
                           s.Ask(s.decoding_echo, kClassify, jpeg));
  for (const ServerChild* server : {&s.null, &s.timed}) {
    const Rate served =
        Print(server == &s.null ? "null model" : "null model, 2 ms a batch",
              s.Ask(*server, kClassify, jpeg));
    PrintPart(served.per_second, alone.per_second, served.server_micros,
              alone.micros, "decode and resize alone");
    PrintPart(served.per_second, least.per_second, served.server_micros,
              least.server_micros, "the echo that decodes");
    PrintPart(served.per_second,
              1 / (1 / alone.per_second + 1 / bare.per_second),
              served.server_micros, alone.micros + bare.server_micros,
              "alone and echo one after the other");
  }
}

bool IsSize(const std::string& part, Size* size) {
  return std::sscanf(part.c_str(), "%dx%d", &size->width, &size->height) == 2;
}

int Main(int argc, char** argv) {
  const absl::Duration time = absl::Seconds(argc > 1 ? std::atof(argv[1]) : 4);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::string part = argc > 3 ? argv[3] : "";
  const bool apart = argc > 4 && argv[4] == std::string("apart");
  const Processors servers = apart ? Processors::kFirstHalf : Processors::kAll;
  const auto child =
      [servers](const std::function<void(const Listening&)>& serve) {
        return std::make_unique<ServerChild>(
            [servers, serve](const Listening& listening) {
              RunOn(servers);
              serve(listening);
            });
      };
  const auto echo = child(ServeEcho);
  const auto decoding_echo = child(ServeDecodingEcho);
  const auto model = [&child](absl::Duration batch_time) {
    return child([batch_time](const Listening& listening) {
      ServeNullModel(batch_time, listening);
    });
  };
  const auto null = model(absl::ZeroDuration());
  const auto timed = model(kBatchTime);
  const auto full = model(absl::InfiniteDuration());
  std::printf("processes: echo %d, null model %d, 2 ms a batch %d, full %d\n",
              echo->pid(), null->pid(), timed->pid(), full->pid());
  const Setting setting = {*echo,
                           *decoding_echo,
                           *null,
                           *timed,
                           *full,
                           servers,
                           apart ? Processors::kRest : Processors::kAll,
                           time};
  const auto runs = [&part](const char* name) {
    return part.empty() || part == name;
  };
  for (int i = 0; i < rounds; ++i) {
    if (runs("tensor")) CompareTensors(setting);
    if (runs("transports")) CompareTransports(setting);
    if (runs("refused")) MeasureRefusals(setting);
    for (const Size& size : kPhotographs) {
      if (runs("jpeg")) CompareJpegs(setting, size);
    }
    if (Size size; IsSize(part, &size)) CompareJpegs(setting, size);
  }
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) { return sfmamba::Main(argc, argv); }
