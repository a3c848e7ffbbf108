#include "server/flags.h"

#include <cstdint>
#include <map>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/proto_duration.h"

// Unset flags leave the field of the configuration file as it is.
using OptionalString = absl::optional<std::string>;
using OptionalInt32 = absl::optional<int32_t>;
using OptionalInt64 = absl::optional<int64_t>;
using OptionalBool = absl::optional<bool>;
using OptionalDuration = absl::optional<absl::Duration>;

namespace sfmamba::server {
namespace {

// Numbers of CUDA devices: "0,2".
struct GpuList {
  std::vector<int> numbers;
};

bool AbslParseFlag(absl::string_view text, GpuList* list, std::string* error) {
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number)) {
      *error = "expected numbers of devices, such as 0,1";
      return false;
    }
    list->numbers.push_back(number);
  }
  return true;
}

std::string AbslUnparseFlag(const GpuList& list) {
  return absl::StrJoin(list.numbers, ",");
}

}  // namespace
}  // namespace sfmamba::server

using OptionalGpus = absl::optional<sfmamba::server::GpuList>;

ABSL_FLAG(bool, help, false, "Print the flags.");
ABSL_FLAG(std::string, config, "",
          "ServerConfig file in text format; flags win over it.");
ABSL_FLAG(bool, validate_config, false,
          "Check the configuration and exit: 0 if it is good, else 2.");
ABSL_FLAG(bool, print_effective_config, false,
          "Print the configuration with all defaults and flags, and exit.");

ABSL_FLAG(bool, tune, false,
          "Measure the models' scans on the first GPU, write --fold_table, and "
          "exit.");

ABSL_FLAG(OptionalString, model_repository, absl::nullopt,
          "Folder of <id>/<version>/.");
ABSL_FLAG(OptionalString, model_path, absl::nullopt,
          "Folder of a single version.");
ABSL_FLAG(OptionalString, model_name, absl::nullopt,
          "Id to serve --model_path by.");
ABSL_FLAG(OptionalString, host, absl::nullopt,
          "Address to bind; default 127.0.0.1.");
ABSL_FLAG(OptionalInt32, port, absl::nullopt,
          "gRPC port; default 8001; 0: any free one.");
ABSL_FLAG(OptionalInt32, metrics_port, absl::nullopt,
          "HTTP port of /metrics; default 8002; 0: any free one.");
ABSL_FLAG(OptionalInt32, decode_threads, absl::nullopt,
          "Threads that decode images, and as many that encode answers; "
          "default: processors - 2, at least 1.");
ABSL_FLAG(OptionalInt32, decode_queue_items, absl::nullopt,
          "Images that may wait to be decoded; default 256.");
ABSL_FLAG(OptionalInt64, decode_memory_budget_bytes, absl::nullopt,
          "Pixels being decoded at once, in bytes; default 1 GiB.");
ABSL_FLAG(OptionalInt64, max_message_bytes, absl::nullopt,
          "Largest message, received or sent; default 64 MiB.");
ABSL_FLAG(OptionalInt64, max_image_bytes, absl::nullopt,
          "Largest encoded image; default 32 MiB.");
ABSL_FLAG(OptionalInt64, max_image_pixels, absl::nullopt,
          "Most pixels of an image; default 50,000,000.");
ABSL_FLAG(OptionalInt32, max_image_side, absl::nullopt,
          "Longest side of an image, in pixels; default 16384.");
ABSL_FLAG(OptionalInt32, max_images_per_request, absl::nullopt, "Default 64.");
ABSL_FLAG(OptionalDuration, default_deadline, absl::nullopt,
          "Of calls that come without one; default 30s.");
ABSL_FLAG(OptionalDuration, max_deadline, absl::nullopt,
          "Longer deadlines are cut to it; default 120s.");
ABSL_FLAG(OptionalDuration, decode_timeout, absl::nullopt,
          "Processor time to decode one picture; default 1s.");
ABSL_FLAG(OptionalDuration, drain_delay, absl::nullopt,
          "From SIGTERM to refusing new calls; default 5s.");
ABSL_FLAG(OptionalDuration, drain_timeout, absl::nullopt,
          "For the calls left to end, after drain_delay; default 25s.");
ABSL_FLAG(OptionalInt32, compute_threads, absl::nullopt,
          "Threads that run a model on the CPU; default: processors.");
ABSL_FLAG(
    OptionalString, device, absl::nullopt,
    "auto (default: the GPUs, or the CPU if there is none), cpu or cuda.");
ABSL_FLAG(OptionalGpus, gpus, absl::nullopt,
          "Numbers of the CUDA devices, such as 0,1; default: all.");
ABSL_FLAG(OptionalInt32, slots_per_gpu, absl::nullopt,
          "Batches on their way through one GPU at a time; default 2.");
ABSL_FLAG(OptionalBool, deterministic, absl::nullopt,
          "On GPUs: kernels whose order of operations is fixed.");
ABSL_FLAG(OptionalBool, exact_gelu, absl::nullopt,
          "on GPUs, in half precision: GELU in its erf form, in a pass of its "
          "own, instead of its tanh form in the matrix product");
ABSL_FLAG(OptionalString, fold_table, absl::nullopt,
          "On GPUs: the file of measured scan plans, which --tune writes and "
          "loading adds to.");
ABSL_FLAG(OptionalDuration, tune_budget, absl::nullopt,
          "On GPUs: to measure, before a model is loaded, those of its scans "
          "that --fold_table lacks; default 5s, 0s: not at all.");
ABSL_FLAG(OptionalBool, disable_reflection, absl::nullopt,
          "Do not serve gRPC reflection.");
ABSL_FLAG(OptionalBool, exit_on_load_error, absl::nullopt,
          "Exit with 3 if a model does not load; default true.");
ABSL_FLAG(OptionalBool, random_init, absl::nullopt,
          "Random weights for models that have none, for trials.");
ABSL_FLAG(OptionalString, log_level, absl::nullopt,
          "debug, info (default), warning or error; of parts of the server: "
          "info,models=debug,requests=warning.");
ABSL_FLAG(OptionalString, log_format, absl::nullopt, "json (default) or text.");

namespace sfmamba::server {
namespace {

// The flags above, not those of libraries.
std::map<std::string, absl::CommandLineFlag*> OwnFlags() {
  std::map<std::string, absl::CommandLineFlag*> own;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::EndsWith(flag->Filename(), "server/flags.cc")) {
      own.emplace(std::string(name), flag);
    }
  }
  return own;
}

template <typename Value, typename Set>
void Apply(const absl::Flag<absl::optional<Value>>& flag, const Set& set) {
  const absl::optional<Value> value = absl::GetFlag(flag);
  if (value.has_value()) set(*value);
}

bool IsBool(const absl::CommandLineFlag& flag) {
  return flag.IsOfType<bool>() || flag.IsOfType<OptionalBool>();
}

}  // namespace

absl::Status ParseFlags(int argc, char** argv, CommandLine* command_line) {
  const auto flags = OwnFlags();
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    absl::string_view name = argument;
    if (!absl::ConsumePrefix(&name, "--")) {
      return absl::InvalidArgumentError(
          absl::StrCat(argument, ": expected a flag, --name=value"));
    }
    const size_t equals = name.find('=');
    std::string value;
    if (equals != absl::string_view::npos) {
      value = std::string(name.substr(equals + 1));
      name = name.substr(0, equals);
    }
    const auto flag = flags.find(std::string(name));
    if (flag == flags.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(argument, ": there is no such flag"));
    }
    if (equals == absl::string_view::npos) {
      if (IsBool(*flag->second)) {
        value = "true";
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat(argument, ": expected a value"));
      }
    }
    std::string error;
    if (!flag->second->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": got \"", value, "\": ", error));
    }
  }
  command_line->config_path = absl::GetFlag(FLAGS_config);
  command_line->help = absl::GetFlag(FLAGS_help);
  command_line->validate_config = absl::GetFlag(FLAGS_validate_config);
  command_line->tune = absl::GetFlag(FLAGS_tune);
  command_line->print_effective_config =
      absl::GetFlag(FLAGS_print_effective_config);
  return absl::OkStatus();
}

void ApplyFlags(v1::ServerConfig* c) {
  Apply(FLAGS_model_repository,
        [c](const auto& v) { c->set_model_repository(v); });
  Apply(FLAGS_model_path, [c](const auto& v) { c->set_model_path(v); });
  Apply(FLAGS_model_name, [c](const auto& v) { c->set_model_name(v); });
  Apply(FLAGS_host, [c](const auto& v) { c->set_host(v); });
  Apply(FLAGS_port, [c](int v) { c->set_port(v); });
  Apply(FLAGS_metrics_port, [c](int v) { c->set_metrics_port(v); });
  Apply(FLAGS_decode_threads, [c](int v) { c->set_decode_threads(v); });
  Apply(FLAGS_decode_queue_items, [c](int v) { c->set_decode_queue_items(v); });
  Apply(FLAGS_decode_memory_budget_bytes,
        [c](int64_t v) { c->set_decode_memory_budget_bytes(v); });
  Apply(FLAGS_max_message_bytes,
        [c](int64_t v) { c->set_max_message_bytes(v); });
  Apply(FLAGS_max_image_bytes, [c](int64_t v) { c->set_max_image_bytes(v); });
  Apply(FLAGS_max_image_pixels, [c](int64_t v) { c->set_max_image_pixels(v); });
  Apply(FLAGS_max_image_side, [c](int v) { c->set_max_image_side(v); });
  Apply(FLAGS_max_images_per_request,
        [c](int v) { c->set_max_images_per_request(v); });
  Apply(FLAGS_default_deadline, [c](absl::Duration v) {
    base::ToProto(v, c->mutable_default_deadline());
  });
  Apply(FLAGS_max_deadline,
        [c](absl::Duration v) { base::ToProto(v, c->mutable_max_deadline()); });
  Apply(FLAGS_decode_timeout, [c](absl::Duration v) {
    base::ToProto(v, c->mutable_decode_timeout());
  });
  Apply(FLAGS_drain_delay,
        [c](absl::Duration v) { base::ToProto(v, c->mutable_drain_delay()); });
  Apply(FLAGS_drain_timeout, [c](absl::Duration v) {
    base::ToProto(v, c->mutable_drain_timeout());
  });
  Apply(FLAGS_compute_threads, [c](int v) { c->set_compute_threads(v); });
  Apply(FLAGS_device, [c](const auto& v) { c->set_device(v); });
  Apply(FLAGS_gpus, [c](const GpuList& v) {
    c->mutable_gpus()->Assign(v.numbers.begin(), v.numbers.end());
  });
  Apply(FLAGS_slots_per_gpu, [c](int v) { c->set_slots_per_gpu(v); });
  Apply(FLAGS_deterministic, [c](bool v) { c->set_deterministic(v); });
  Apply(FLAGS_exact_gelu, [c](bool v) { c->set_exact_gelu(v); });
  Apply(FLAGS_fold_table, [c](const auto& v) { c->set_fold_table(v); });
  Apply(FLAGS_tune_budget,
        [c](absl::Duration v) { base::ToProto(v, c->mutable_tune_budget()); });
  Apply(FLAGS_disable_reflection,
        [c](bool v) { c->set_disable_reflection(v); });
  Apply(FLAGS_exit_on_load_error,
        [c](bool v) { c->set_exit_on_load_error(v); });
  Apply(FLAGS_random_init, [c](bool v) { c->set_random_init(v); });
  Apply(FLAGS_log_level, [c](const auto& v) { c->set_log_level(v); });
  Apply(FLAGS_log_format, [c](const auto& v) { c->set_log_format(v); });
}

std::string FlagsHelp() {
  std::string help;
  for (const auto& [name, flag] : OwnFlags()) {
    absl::StrAppend(&help, "  --", name, "  ", flag->Help(), "\n");
  }
  return help;
}

}  // namespace sfmamba::server
