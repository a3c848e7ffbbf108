// Fuzzes a config.json in Hugging Face's layout. In half of the cases,
// preprocessor_config.json has the same text. The files must be refused with a
// reason or be read. ToModelConfig() must then accept the result or refuse it
// with a reason.
#include <cstdint>
#include <string>

#include "model/weights/weight_shapes.h"
#include "server/repository/hugging_face_config.h"
#include "server/repository/model_config.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sfmamba::Check;
  namespace repository = sfmamba::repository;
  const auto check_refused = [](const absl::Status& status) {
    Check(status.code() == absl::StatusCode::kInvalidArgument,
          "a configuration is refused as an invalid argument");
    Check(!status.message().empty() && status.message().size() < 1000,
          "with a short reason");
  };
  sfmamba::Input input(data, size);
  sfmamba::weights::ClassifierShapes shapes;
  shapes.dim = 80;
  shapes.in_dim = 32;
  shapes.depths = {1, 3, 8, 4};
  shapes.attention = true;
  const int choice = input.Below(6);
  shapes.num_classes = 1 + choice % 3;
  repository::HuggingFaceTexts texts;
  texts.config = input.text();
  if (choice >= 3) texts.preprocessor = texts.config;
  const auto read = repository::ReadHuggingFaceConfig(texts, shapes);
  if (!read.ok()) return check_refused(read.status()), 0;
  Check(read->labels.empty() ||
            static_cast<int>(read->labels.size()) == shapes.num_classes,
        "each class has a label");
  const auto config =
      repository::ToModelConfig(read->config, read->labels.size());
  if (!config.ok()) return check_refused(config.status()), 0;
  Check(sfmamba::model::Validate(*config).ok(), "a configuration is valid");
  return 0;
}
