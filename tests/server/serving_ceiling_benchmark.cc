// What serving costs beside the model: the server with a model that answers at
// once, beside a gRPC server that does nothing but answer the same bytes. Both
// in processes of their own, with the same client, in turn. Run by hand:
//
//   bazel run //tests/server:serving_ceiling_benchmark [-- SECONDS [ROUNDS
//       [tensor|refused|jpeg]]]
//
// Beside the rate it prints the processor time that the server and the client
// took for each request. On few processors they share them, so that the rates
// are bounded by their sum. The parts of processor time say what the rates
// would on a machine that does nothing else.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>  // Before jpeglib.h.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "jpeglib.h"
#include "server/base/sha256.h"
#include "server/image/image_input.h"
#include "server/server.h"
#include "server/server_config.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/server/picture.h"
#include "tests/testing/fake_context.h"

namespace sfmamba {
namespace {

constexpr int kSide = 224;
constexpr int kClasses = 1000;
constexpr int kChannels = 2;
constexpr int kCallsInFlight = 64;
// Of the server that is full.
constexpr int kFullQueue = 8;

// ---- The servers ----

// Answers at once, or never.
class NullModel final : public model::VisionModel {
 public:
  NullModel(const model::ModelConfig& config, bool stands_still)
      : config_(config), stands_still_(stands_still) {}

  int contexts() const override { return 1; }
  std::string context_device(int /*index*/) const override { return "none"; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images)
            -> absl::StatusOr<std::vector<model::Result>> {
          while (stands_still_) pause();
          model::Classification answer;
          answer.logits.resize(kClasses);
          return std::vector<model::Result>(images.size(), answer);
        });
  }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override {
    return model::Precision::kFloat32;
  }
  std::string device() const override { return "none"; }
  absl::Status health() const override { return absl::OkStatus(); }
  int fold_factor(int /*images*/) const override { return 1; }

 private:
  const model::ModelConfig config_;
  const bool stands_still_;
};

std::string WriteModel(const std::string& batching) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "ceiling.XXXXXX").string();
  const std::string repository = mkdtemp(pattern.data());
  const std::filesystem::path folder = repository + "/null/1";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.safetensors") << "none";
  std::ofstream labels(folder / "labels.txt");
  for (int i = 0; i < kClasses; ++i) labels << "label " << i << "\n";
  std::ofstream(folder / "config.textproto") << absl::StrCat(
      R"(backbone { variant: "custom" dim: 16 in_dim: 8 depths: [1, 1, 5, 3]
         num_heads: [1, 2, 4, 8] windows: [4, 2] layer_scale: true } )",
      "input { size: ", kSide, " } batching { ", batching,
      " } weights { size_bytes: 4 sha256: '",
      *server::FileSha256((folder / "model.safetensors").string()), "' }");
  return repository;
}

// Runs until this process is killed; tells the port.
void Serve(bool stands_still, const std::function<void(int)>& listening) {
  // As ServerMain does.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::string repository = WriteModel(
      stands_still ? absl::StrCat("max_queue_items: ", kFullQueue) : "");
  // Not destroyed: the process is killed.
  auto* log = new observability::Logger(std::fopen("/dev/null", "w"),
                                        observability::LogLevel::kInfo,
                                        observability::LogFormat::kJson);
  server::Server::Options options;
  v1::ServerConfig config;
  config.set_model_repository(repository);
  config.set_port(0);
  config.set_metrics_port(0);
  config.set_decode_threads(std::thread::hardware_concurrency());
  // A model that stands still has nothing to measure.
  if (stands_still) config.mutable_profile_budget();
  options.config = server::WithDefaults(config);
  options.build.version = "benchmark";
  options.load = [stands_still](const repository::ModelDirectory& directory,
                                const auto&) {
    return std::make_unique<NullModel>(directory.config, stands_still);
  };
  auto server = server::Server::Start(options, log);
  if (!server.ok() || !(*server)->LoadModels().ok()) std::abort();
  std::filesystem::remove_all(repository);
  listening((*server)->port());
  while (true) pause();
}

// Answers each request with the same bytes, as long as the server's answers,
// without looking at it.
class Echo final : public v1::VisionService::WithRawCallbackMethod_Classify<
                       v1::VisionService::Service> {
 public:
  Echo() {
    v1::ClassifyResponse response;
    response.set_model("models/null/versions/1");
    v1::ClassifyResult* result = response.add_results();
    for (int i = 0; i < 5; ++i) {
      v1::Category* category = result->add_categories();
      category->set_class_id(i + 1);
      category->set_label(absl::StrCat("label ", i));
      category->set_score(0.001);
    }
    const grpc::Slice slice(response.SerializeAsString());
    answer_ = grpc::ByteBuffer(&slice, 1);
  }
  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* /*request*/,
                                     grpc::ByteBuffer* response) override {
    *response = answer_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  grpc::ByteBuffer answer_;
};

void ServeEcho(const std::function<void(int)>& listening) {
  Echo echo;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  listening(port);
  while (true) pause();
}

// A server in a process of its own, killed at the end. Processes are made
// before anything of gRPC is.
class ServerChild {
 public:
  explicit ServerChild(
      const std::function<void(const std::function<void(int)>&)>& serve) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve([&ends](int port) {
        if (write(ends[1], &port, sizeof(port)) < 0) std::abort();
      });
    }
    close(ends[1]);
    if (read(ends[0], &port_, sizeof(port_)) != sizeof(port_)) std::abort();
    close(ends[0]);
  }
  ~ServerChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // The processor time that it has used.
  absl::Duration ProcessorTime() const {
    std::ifstream file(absl::StrCat("/proc/", pid_, "/stat"));
    std::string word;
    for (int i = 0; i < 13; ++i) file >> word;
    int64_t user = 0, system = 0;
    file >> user >> system;
    return absl::Seconds(user + system) / sysconf(_SC_CLK_TCK);
  }

 private:
  pid_t pid_;
  int port_ = 0;
};

// ---- The client ----

absl::Duration OwnProcessorTime() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

// Keeps a number of calls in flight until it is stopped.
class Client {
 public:
  Client(const std::string& address, const std::string& request) {
    const grpc::Slice slice(request);
    request_ = grpc::ByteBuffer(&slice, 1);
    for (int i = 0; i < kChannels; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt("channel", i);
      stubs_.push_back(
          std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
              address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  struct Rate {
    double per_second;
    double server_micros, client_micros;  // Processor time of a request.
    int64_t other;                        // Ended with another code.
  };

  // Counts the calls that end with `code`.
  Rate Run(const ServerChild& server, absl::Duration time,
           grpc::StatusCode code) {
    code_ = code;
    ended_ = other_ = 0;
    stop_ = false;
    absl::BlockingCounter open(kCallsInFlight);
    open_ = &open;
    const absl::Time start = absl::Now();
    const absl::Duration server_before = server.ProcessorTime();
    const absl::Duration client_before = OwnProcessorTime();
    for (int i = 0; i < kCallsInFlight; ++i) Start(i % kChannels);
    absl::SleepFor(time);
    const double count = ended_.load();
    const double micros = 1e6 / count;
    const Rate rate = {
        count / absl::ToDoubleSeconds(absl::Now() - start),
        absl::ToDoubleSeconds(server.ProcessorTime() - server_before) * micros,
        absl::ToDoubleSeconds(OwnProcessorTime() - client_before) * micros,
        other_.load()};
    stop_ = true;
    open.Wait();
    return rate;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
  };

  void Start(int channel) {
    auto* call = new Call;
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::seconds(10));
    stubs_[channel]->UnaryCall(
        &call->context, "/sfmamba.v1.VisionService/Classify",
        grpc::StubOptions(), &request_, &call->response,
        [this, call, channel](const grpc::Status& status) {
          delete call;
          ++(status.error_code() == code_ ? ended_ : other_);
          if (stop_) return open_->DecrementCount(), void();
          Start(channel);
        });
  }

  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  grpc::ByteBuffer request_;
  grpc::StatusCode code_ = grpc::StatusCode::OK;
  std::atomic<int64_t> ended_{0}, other_{0};
  std::atomic<bool> stop_{false};
  absl::BlockingCounter* open_ = nullptr;
};

std::string TensorRequest(bool valid = true) {
  v1::ClassifyRequest request;
  request.set_model("null");
  v1::Tensor* tensor = request.add_images()->mutable_tensor();
  tensor->set_data_type(v1::Tensor::UINT8);
  for (int size : {3, kSide, kSide}) tensor->add_shape(size);
  tensor->set_data(std::string(3 * kSide * kSide, 'x'));
  if (!valid) request.mutable_params()->set_top_k(-1);
  return request.SerializeAsString();
}

std::string Photograph() {
  image::RgbImage image = server::Gradient(600, 400);
  uint32_t noise = 1;
  for (uint8_t& byte : image.data) {
    noise = noise * 1664525u + 1013904223u;
    byte = byte * 7 / 8 + (noise >> 28);
  }
  return server::EncodeJpeg(
      600, 400, 3, image.data.data(),
      [](jpeg_compress_struct& c) { jpeg_set_quality(&c, 85, TRUE); });
}

std::string JpegRequest() {
  v1::ClassifyRequest request;
  request.set_model("null");
  request.add_images()->set_encoded(Photograph());
  return request.SerializeAsString();
}

// A picture of a few kilobytes.
std::string SmallRequest() {
  v1::ClassifyRequest request;
  request.set_model("null");
  v1::PixelBuffer* pixels = request.add_images()->mutable_pixels();
  pixels->set_width(48);
  pixels->set_height(48);
  pixels->set_format(v1::PixelBuffer::GRAY8);
  pixels->set_data(std::string(48 * 48, 'x'));
  return request.SerializeAsString();
}

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
  config.image_size = kSide;
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

// Processor time of a request on both sides.
double Micros(const Client::Rate& rate) {
  return rate.server_micros + rate.client_micros;
}

// How much of what `base` does `rate` is.
void PrintPart(double rate, double base, double micros, double base_micros,
               const char* of) {
  std::printf("  %.0f %% of %s, by processor time %.0f %%\n", 100 * rate / base,
              of, 100 * base_micros / micros);
}

Client::Rate Print(const char* what, const Client::Rate& rate) {
  std::printf(
      "%-34s %9.0f/s  server %6.1f us  client %6.1f us%s\n", what,
      rate.per_second, rate.server_micros, rate.client_micros,
      rate.other > 0 ? absl::StrCat("  others: ", rate.other).c_str() : "");
  std::fflush(stdout);
  return rate;
}

int Main(int argc, char** argv) {
  const absl::Duration time = absl::Seconds(argc > 1 ? std::atof(argv[1]) : 4);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::string part = argc > 3 ? argv[3] : "";
  const ServerChild echo(ServeEcho);
  const ServerChild null(
      [](const auto& listening) { Serve(/*stands_still=*/false, listening); });
  const ServerChild full(
      [](const auto& listening) { Serve(/*stands_still=*/true, listening); });
  std::printf("processes: echo %d, null model %d, full %d\n", echo.pid(),
              null.pid(), full.pid());
  const std::string tensor = TensorRequest();
  Client echo_client(echo.address(), tensor);
  Client null_client(null.address(), tensor);
  Client invalid_client(null.address(), TensorRequest(/*valid=*/false));
  Client full_client(full.address(), tensor);
  Client full_small_client(full.address(), SmallRequest());
  Client jpeg_client(null.address(), JpegRequest());
  Client echo_jpeg(echo.address(), JpegRequest());
  using grpc::StatusCode;
  const auto runs = [&part](const char* name) {
    return part.empty() || part == name;
  };
  for (int i = 0; i < rounds; ++i) {
    if (runs("tensor")) {
      const Client::Rate bare =
          Print("echo, 150 kB", echo_client.Run(echo, time, StatusCode::OK));
      const Client::Rate served =
          Print("null model, 150 kB tensor",
                null_client.Run(null, time, StatusCode::OK));
      PrintPart(served.per_second, bare.per_second, Micros(served),
                Micros(bare), "the echo");
    }
    if (runs("refused")) {
      Print("refused: a field",
            invalid_client.Run(null, time, StatusCode::INVALID_ARGUMENT));
      Print("refused: queue full",
            full_client.Run(full, time, StatusCode::RESOURCE_EXHAUSTED));
      Print("refused: queue full, 2 kB",
            full_small_client.Run(full, time, StatusCode::RESOURCE_EXHAUSTED));
    }
    if (runs("jpeg")) {
      const DecodeRate alone = DecodeAlone(time);
      std::printf("%-34s %9.0f/s  alone  %6.1f us\n", "decode and resize alone",
                  alone.per_second, alone.micros);
      const Client::Rate bare = Print(
          "echo, 600x400 JPEG", echo_jpeg.Run(echo, time, StatusCode::OK));
      const Client::Rate jpeg =
          Print("null model, 600x400 JPEG",
                jpeg_client.Run(null, time, StatusCode::OK));
      PrintPart(jpeg.per_second, alone.per_second, Micros(jpeg), alone.micros,
                "decode and resize alone");
      PrintPart(jpeg.per_second,
                1 / (1 / alone.per_second + 1 / bare.per_second), Micros(jpeg),
                alone.micros + Micros(bare), "both one after the other");
    }
  }
  std::fflush(stdout);
  _exit(0);  // The calls of the full server are still open.
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) { return sfmamba::Main(argc, argv); }
