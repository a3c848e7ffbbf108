// Fuzzes the text of a model's configuration. It must be refused with a reason
// or be accepted by model::Validate().
#include <cstdint>
#include <string>

#include "server/repository/model_config.h"
#include "server/settings/textproto.h"
#include "sfmamba/v1/config.pb.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sfmamba::Check;
  namespace repository = sfmamba::repository;
  const auto check_refused = [](const absl::Status& status) {
    Check(status.code() == absl::StatusCode::kInvalidArgument,
          "a configuration is refused as an invalid argument");
    Check(!status.message().empty(), "with a reason");
  };
  sfmamba::Input input(data, size);
  const int labels = input.Below(256);
  sfmamba::v1::ModelConfig proto;
  const absl::Status parsed =
      sfmamba::server::ParseTextProto("config", input.text(), &proto);
  if (!parsed.ok()) return check_refused(parsed), 0;
  const auto config = repository::ToModelConfig(proto, labels);
  if (!config.ok()) return check_refused(config.status()), 0;
  Check(sfmamba::model::Validate(*config).ok(), "a configuration is valid");
  const sfmamba::batching::BatchOptions options =
      repository::ToBatchOptions(proto.batching(), config->task);
  Check(options.max_batch_size > 0 && options.max_queue_items > 0 &&
            options.max_queue_bytes > 0,
        "batches and queues have room");
  return 0;
}
