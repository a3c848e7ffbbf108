#include "tests/server/running_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/batching/batch_task.h"
#include "server/server_config.h"
#include "server/settings/sha256.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

v1::ServerConfig OnFreePorts(v1::ServerConfig config) {
  if (!config.has_port()) config.set_port(0);
  config.set_metrics_port(0);
  if (!config.has_http_port()) config.set_http_port(-1);
  if (!config.has_drain_delay()) config.mutable_drain_delay();
  return WithDefaults(config);
}

// Returns the lines of a model's configuration that depend on the task.
std::string TaskFields(model::VisionTask task) {
  if (task == model::VisionTask::kClassification) {
    return absl::StrCat("input { size: ", FakeModel::kSide, " }");
  }
  return absl::StrCat(
      "task: ",
      task == model::VisionTask::kDetection ? "DETECTION" : "SEGMENTATION",
      " input { short_side: ", FakeModel::kShortSide,
      " long_side: ", FakeModel::kLongSide, " }");
}

// Returns the content of a weights file. For detection and segmentation, the
// server parses the file's header, so the header must be valid. It describes no
// tensors.
std::string Weights(const std::string& id, model::VisionTask task) {
  if (task == model::VisionTask::kClassification) return "weights of " + id;
  return std::string("\2\0\0\0\0\0\0\0{}", 10);
}

}  // namespace

void WriteModel(const std::string& repository, const std::string& id,
                const std::string& version, const std::string& batching,
                model::VisionTask task, const std::string& more) {
  const std::filesystem::path folder =
      std::filesystem::path(repository) / id / version;
  std::filesystem::create_directories(folder);
  const std::string weights = Weights(id, task);
  std::ofstream(folder / "model.safetensors") << weights;
  std::ofstream labels(folder / "labels.txt");
  for (int i = 0; i < FakeModel::kClasses; ++i) labels << "label " << i << "\n";
  std::ofstream(folder / "config.textproto") << absl::StrCat(
      R"(backbone { variant: "custom" dim: 16 in_dim: 8 depths: [1, 1, 5, 3]
         num_heads: [1, 2, 4, 8] windows: [4, 2] layer_scale: true } )",
      TaskFields(task), more, " batching { ", batching,
      " } weights { size_bytes: ", weights.size(), " sha256: '",
      *FilesSha256({(folder / "model.safetensors").string()}), "' }");
}

std::string NewFolder(const std::string& name) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) /
      absl::StrCat(test->test_suite_name(), "_", test->name(), "_", name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

Ending EndingOf(const grpc::Status& status,
                const grpc::ClientContext* context) {
  Ending ending;
  ending.code = status.error_code();
  ending.message = status.error_message();
  google::rpc::Status proto;
  proto.ParseFromString(status.error_details());
  for (const google::protobuf::Any& any : proto.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest request;
    google::rpc::RetryInfo retry;
    if (any.UnpackTo(&info)) {
      EXPECT_EQ(info.domain(), "sfmamba.serving");
      ending.reason = info.reason();
      ending.metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (any.UnpackTo(&request)) {
      ending.field = request.field_violations(0).field();
    } else if (any.UnpackTo(&retry)) {
      ending.has_retry_info = true;
    }
  }
  if (context != nullptr) {
    const auto& trailers = context->GetServerTrailingMetadata();
    const auto found = trailers.find("grpc-retry-pushback-ms");
    if (found != trailers.end()) {
      ending.pushback = std::string(found->second.data(), found->second.size());
    }
  }
  return ending;
}

RunningServer::RunningServer(v1::ServerConfig config, bool load)
    : log_file_(std::tmpfile(), &std::fclose),
      log_(log_file_.get(), observability::LogLevel::kDebug,
           observability::LogFormat::kJson) {
  Server::Options options;
  options.config = OnFreePorts(std::move(config));
  options.build.version = "test";
  options.build.revision = "0123abc";
  options.load = [this](const repository::ModelDirectory& directory,
                        const repository::ModelRepository::CaptureFailed&)
      -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
    return std::make_unique<FakeModel>(directory.config, &gate_);
  };
  options.clock = [this] {
    return base::SteadyNow() + absl::Nanoseconds(clock_advance_nanos_.load());
  };
  options.device_failed = [this] { ++device_failures_; };
  options.release_memory = [this] { ++memory_releases_; };
  options.refusal_window = absl::ZeroDuration();
  options.scrape_window = absl::ZeroDuration();
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(options, &log_);
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  if (load) {
    const absl::Status loaded = server_->LoadModels();
    EXPECT_TRUE(loaded.ok()) << loaded;
  } else {
    const absl::Status opened = server_->OpenRequestPorts();
    EXPECT_TRUE(opened.ok()) << opened;
  }
  Connect();
}

void RunningServer::Connect() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ =
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1::VisionService::NewStub(channel_);
  health_ = grpc::health::v1::Health::NewStub(channel_);
}

void RunningServer::AwaitRoundTrip() {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  stub_->ListModels(&context, v1::ListModelsRequest(), &response);
}

std::string RunningServer::Exposition() const {
  return HttpGet(server_->metrics_port(), "/metrics");
}

double RunningServer::Sum(
    const std::string& name,
    const std::initializer_list<std::string>& labels) const {
  return SumOf(Samples(Exposition()), name, labels);
}

double RunningServer::WaitForSum(
    const std::string& name, const std::initializer_list<std::string>& labels,
    double value) const {
  const absl::Time give_up = absl::Now() + kPatience;
  double sum;
  while ((sum = Sum(name, labels)) != value && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  return sum;
}

std::string RunningServer::Log() const {
  EXPECT_TRUE(log_.Flush(kPatience));
  // The log writes at the file's position, which pread() does not change.
  const int file = fileno(log_file_.get());
  struct stat found = {};
  EXPECT_EQ(fstat(file, &found), 0);
  std::string text(found.st_size, '\0');
  text.resize(pread(file, text.data(), text.size(), 0));
  return text;
}

v1::Image GreyImage(int grey) {
  v1::Image image;
  v1::PixelBuffer& pixels = *image.mutable_pixels();
  pixels.set_width(FakeModel::kSide);
  pixels.set_height(FakeModel::kSide);
  pixels.set_format(v1::PixelBuffer::RGB8);
  pixels.set_data(std::string(3 * FakeModel::kSide * FakeModel::kSide,
                              static_cast<char>(grey)));
  return image;
}

v1::ClassifyRequest GreyRequest(int grey) {
  v1::ClassifyRequest request;
  *request.add_images() = GreyImage(grey);
  return request;
}

}  // namespace sfmamba::server
