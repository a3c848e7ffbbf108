#include "server/kserve/inference.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/kserve/infer_parameters.h"

namespace sfmamba::kserve {
namespace {

// A prediction's fields and those of a ModelInferRequest that fill them.
struct FieldName {
  absl::string_view prefix;
  absl::string_view replacement;
};
constexpr FieldName kFieldNames[] = {
    {"images", "inputs[0]"},
    {"params.", "parameters."},
    {"options.max_queue_wait", "parameters.timeout"},
    {"request_id", "id"},
};

// Returns parameters with which the prediction's answer has the wanted outputs;
// none are known of a request that the prediction will refuse.
prediction::TaskParams ParamsFor(model::VisionTask task,
                                 const std::vector<WantedOutput>& wanted = {},
                                 const InferParameters& parameters = {}) {
  switch (task) {
    case model::VisionTask::kClassification: {
      v1::ClassifyParams params;
      // Tensors hold logits, and so do scores of the classification extension.
      params.set_score_type(v1::ClassifyParams::LOGIT);
      params.set_top_k(1);
      for (const WantedOutput& output : wanted) {
        if (output.tensor.name == kEmbedding) {
          params.set_include_embedding(true);
        } else if (output.classification > 0) {
          params.set_top_k(ClassificationCount(output));
        }
      }
      return params;
    }
    case model::VisionTask::kDetection: {
      v1::DetectParams params;
      if (parameters.score_threshold.has_value()) {
        params.set_score_threshold(*parameters.score_threshold);
      }
      return params;
    }
    case model::VisionTask::kSegmentation: {
      v1::SegmentParams params;
      params.set_encoding(v1::SegmentParams::RAW_INDEX);
      return params;
    }
  }
  return v1::ClassifyParams();
}

}  // namespace

// Predictions name the fields of their own requests; clients know others.
absl::Status InRequestWords(const absl::Status& status) {
  server::ErrorDetail detail = server::GetErrorDetail(status);
  if (!absl::IsInvalidArgument(status) || detail.field.empty()) return status;
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat(detail.field, ": "));
  for (const FieldName& name : kFieldNames) {
    absl::string_view rest = detail.field;
    if (absl::ConsumePrefix(&rest, name.prefix)) {
      detail.field = absl::StrCat(name.replacement, rest);
      break;
    }
  }
  const std::string named = absl::StrCat(detail.field, ": ", message);
  return server::MakeError(status.code(), named, std::move(detail));
}

Inference::Inference(const prediction::TransportEnvironment& environment,
                     observability::Method method, rpc::CallInfo call,
                     grpc::ByteBuffer* message, Ended ended)
    : received_(message, environment.limits.max_images),
      may_read_(call.caller.may_read),
      model_(FindModel(environment, received_.message().model_name(),
                       received_.message().model_version(), "model_name")),
      ended_(std::move(ended)),
      prediction_(environment, Translate(method, std::move(call)), this) {}

void Inference::Run(const absl::Status& serving) {
  absl::Status status = serving;
  if (status.ok()) status = received_.status();
  if (status.ok()) status = model_.status();
  if (!may_read_) status = server::WithoutHint(status);
  prediction_.Start(status);
}

bool Inference::wants_final_mark() const {
  const auto& parameters = received_.message().parameters();
  const auto found = parameters.find(kWantsFinalMark);
  return found != parameters.end() && found->second.bool_param();
}

prediction::PredictionRequest Inference::Translate(observability::Method method,
                                                   rpc::CallInfo call) {
  prediction::PredictionRequest request;
  request.method = method;
  request.call = std::move(call);
  if (model_.ok()) request.version = model_->version;
  request.request_id = received_.message().id();
  request.message_bytes = received_.bytes();
  // A refused request counts as one image.
  request.images = std::max(received_.images(), 1);
  request.image = [this](int i) { return received_.Image(i); };
  if (model_.ok()) request.malformed = TranslateTask(&request);
  return request;
}

absl::Status Inference::TranslateTask(prediction::PredictionRequest* request) {
  const auto loaded = model_->version->Loaded();
  if (!loaded.ok()) {
    request->params = ParamsFor(
        model_->version->task().value_or(model::VisionTask::kClassification));
    return absl::OkStatus();
  }
  const model::ModelConfig& model = (*loaded)->directory.config;
  request->params = ParamsFor(model.task);
  if (!received_.input_status().ok()) return received_.input_status();
  InferParameters parameters;
  std::vector<WantedOutput> wanted;
  absl::Status status =
      ReadParameters(received_.message().parameters(), &parameters);
  if (status.ok()) status = ChooseOutputs(received_.message(), model, &wanted);
  if (!status.ok()) return status;
  if (model.task == model::VisionTask::kSegmentation && received_.files() &&
      received_.images() > 1) {
    return server::InvalidField(
        "inputs[0].shape",
        absl::StrCat("got ", received_.images(),
                     " pictures, expected 1: class maps of pictures have the "
                     "pictures' sizes, and an output has one"));
  }
  request->options = parameters.options;
  request->params = ParamsFor(model.task, wanted, parameters);
  request->include_logits =
      std::any_of(wanted.begin(), wanted.end(), [](const WantedOutput& output) {
        return output.tensor.name == kLogits && output.classification == 0;
      });
  outputs_ = InferOutputs(std::move(wanted), received_.raw());
  return absl::OkStatus();
}

void Inference::Done(const absl::Status& status) {
  inference::packed::ModelInferResponse response;
  if (status.ok()) {
    response.set_model_name(model_->name());
    response.set_model_version(absl::StrCat(model_->version->number()));
    response.set_id(received_.message().id());
    outputs_.MoveTo(&response);
  }
  Ended ended = std::move(ended_);  // It may destroy this.
  ended(InRequestWords(status), &response);
}

}  // namespace sfmamba::kserve
