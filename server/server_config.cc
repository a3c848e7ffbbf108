#include "server/server_config.h"

#include <algorithm>
#include <cstdint>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "server/base/textproto.h"
#include "server/observability/log.h"

namespace sfmamba::server {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMaxConfigBytes = kMiB;
constexpr absl::Duration kLongest = absl::Hours(24);

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t min,
                        int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": got ", value, ", expected ", min, " to ", max));
}

absl::Status CheckRange(absl::string_view field,
                        const google::protobuf::Duration& value,
                        absl::Duration min) {
  const absl::Duration duration = base::FromProto(value);
  if (duration >= min && duration <= kLongest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": got ", absl::FormatDuration(duration), ", expected ",
      absl::FormatDuration(min), " to ", absl::FormatDuration(kLongest)));
}

}  // namespace

absl::StatusOr<v1::ServerConfig> ReadServerConfig(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path, path, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  v1::ServerConfig config;
  const absl::Status status = ParseTextProto(path, *text, &config);
  if (!status.ok()) return status;
  return config;
}

v1::ServerConfig WithDefaults(v1::ServerConfig config) {
  const int processors =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  v1::ServerConfig all;
  all.set_host("127.0.0.1");
  all.set_port(8001);
  all.set_metrics_port(8002);
  all.set_decode_threads(std::max(1, processors - 2));
  all.set_decode_queue_items(256);
  all.set_decode_memory_budget_bytes(1024 * kMiB);
  all.set_max_message_bytes(64 * kMiB);
  all.set_max_image_bytes(32 * kMiB);
  all.set_max_image_pixels(50'000'000);
  all.set_max_image_side(16384);
  all.set_max_images_per_request(64);
  all.mutable_default_deadline()->set_seconds(30);
  all.mutable_max_deadline()->set_seconds(120);
  all.mutable_decode_timeout()->set_seconds(1);
  all.mutable_tune_budget()->set_seconds(5);
  all.mutable_drain_delay()->set_seconds(5);
  all.mutable_drain_timeout()->set_seconds(25);
  all.set_compute_threads(processors);
  all.set_exit_on_load_error(true);
  all.set_log_level("info");
  all.set_log_format("json");
  all.set_device("auto");
  all.set_slots_per_gpu(2);
  // Unset scalars are zero and do not overwrite; a set message replaces, since
  // merging would add the default's nanoseconds to it.
  if (config.has_default_deadline()) all.clear_default_deadline();
  if (config.has_max_deadline()) all.clear_max_deadline();
  if (config.has_decode_timeout()) all.clear_decode_timeout();
  if (config.has_tune_budget()) all.clear_tune_budget();
  if (config.has_drain_delay()) all.clear_drain_delay();
  if (config.has_drain_timeout()) all.clear_drain_timeout();
  all.MergeFrom(config);
  return all;
}

absl::Status Validate(const v1::ServerConfig& c) {
  absl::Status status;
  status.Update(CheckRange("port", c.port(), 0, 65535));
  status.Update(CheckRange("metrics_port", c.metrics_port(), 0, 65535));
  status.Update(CheckRange("decode_threads", c.decode_threads(), 1, 1024));
  status.Update(
      CheckRange("decode_queue_items", c.decode_queue_items(), 1, 1 << 20));
  status.Update(CheckRange("decode_memory_budget_bytes",
                           c.decode_memory_budget_bytes(), kMiB, INT64_MAX));
  // Protobuf's own limit is 2 GiB.
  status.Update(
      CheckRange("max_message_bytes", c.max_message_bytes(), 1024, INT32_MAX));
  status.Update(CheckRange("max_image_bytes", c.max_image_bytes(), 1,
                           c.max_message_bytes()));
  status.Update(CheckRange("max_image_pixels", c.max_image_pixels(), 1,
                           int64_t{1} << 32));
  status.Update(CheckRange("max_image_side", c.max_image_side(), 1, 65535));
  status.Update(CheckRange("max_images_per_request", c.max_images_per_request(),
                           1, 1024));
  status.Update(CheckRange("default_deadline", c.default_deadline(),
                           absl::Milliseconds(1)));
  status.Update(
      CheckRange("max_deadline", c.max_deadline(), absl::Milliseconds(1)));
  status.Update(
      CheckRange("decode_timeout", c.decode_timeout(), absl::Milliseconds(1)));
  status.Update(
      CheckRange("drain_delay", c.drain_delay(), absl::ZeroDuration()));
  status.Update(
      CheckRange("drain_timeout", c.drain_timeout(), absl::ZeroDuration()));
  status.Update(
      CheckRange("tune_budget", c.tune_budget(), absl::ZeroDuration()));
  status.Update(CheckRange("slots_per_gpu", c.slots_per_gpu(), 1, 16));
  for (int gpu : c.gpus()) status.Update(CheckRange("gpus", gpu, 0, 1023));
  status.Update(CheckRange("compute_threads", c.compute_threads(), 1, 1024));
  status.Update(observability::ParseLogLevels(c.log_level()).status());
  status.Update(observability::ParseLogFormat(c.log_format()).status());
  if (!status.ok()) return status;
  if (c.device() != "auto" && c.device() != "cpu" && c.device() != "cuda") {
    return absl::InvalidArgumentError(absl::StrCat(
        "device: got \"", c.device(), "\", expected auto, cpu or cuda"));
  }
  if (c.model_path().empty() != c.model_name().empty()) {
    return absl::InvalidArgumentError(
        "model_path and model_name: got one, expected both or neither");
  }
  if (c.model_repository().empty() && c.model_path().empty()) {
    return absl::InvalidArgumentError(
        "model_repository: got none, expected it or model_path");
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::server
