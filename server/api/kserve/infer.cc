#include "server/api/kserve/infer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/api/kserve/infer_parameters.h"
#include "server/api/kserve/infer_request.h"
#include "server/api/predict_call.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"

namespace sfmamba::kserve {
namespace {

// Maps a field of a prediction to the corresponding field of ModelInferRequest.
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

// Returns the parameters of a prediction that produces the wanted outputs.
// `wanted` is empty if the model is not loaded or the request is invalid.
prediction::TaskParams ParamsFor(model::VisionTask task,
                                 const std::vector<WantedOutput>& wanted = {},
                                 const InferParameters& parameters = {}) {
  switch (task) {
    case model::VisionTask::kClassification: {
      v1::ClassifyParams params;
      // Logits are needed both for output tensors and for the classification
      // extension.
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

InferCodec::InferCodec(const prediction::TransportEnvironment& environment,
                       call::Call* call)
    : pictures_(call->ReadPictures(environment.limits.max_images, &request_)),
      may_read_(call->info().caller.may_read),
      model_(FindModel(environment, request_.model_name(),
                       request_.model_version(), "model_name")) {}

absl::Status InferCodec::status() const {
  absl::Status status = pictures_->status();
  if (status.ok()) status = model_.status();
  return may_read_ ? status : server::WithoutHint(status);
}

prediction::PredictionRequest InferCodec::Translate() {
  prediction::PredictionRequest request;
  if (model_.ok()) request.version = model_->version;
  request.request_id = request_.id();
  request.images = pictures_->count();
  request.image = [this](int i) {
    image::ImageSource source = ImageOf(request_, i);
    pictures_->SetBytes(&source);
    return source;
  };
  if (model_.ok()) request.malformed = TranslateTask(&request);
  return request;
}

absl::Status InferCodec::TranslateTask(prediction::PredictionRequest* request) {
  const auto loaded = model_->version->Loaded();
  if (!loaded.ok()) {
    request->params = ParamsFor(
        model_->version->task().value_or(model::VisionTask::kClassification));
    return absl::OkStatus();
  }
  const model::ModelConfig& model = (*loaded)->directory.config;
  request->params = ParamsFor(model.task);
  if (!pictures_->images_status().ok()) return pictures_->images_status();
  InferParameters parameters;
  std::vector<WantedOutput> wanted;
  absl::Status status = ReadParameters(request_.parameters(), &parameters);
  if (status.ok()) status = ChooseOutputs(request_, model, &wanted);
  if (!status.ok()) return status;
  if (model.task == model::VisionTask::kSegmentation && HasFiles(request_) &&
      request->images > 1) {
    return server::InvalidField(
        "inputs[0].shape",
        absl::StrCat("got ", request->images,
                     " pictures, expected 1: class maps of pictures have the "
                     "pictures' sizes, and an output has one"));
  }
  request->options = parameters.options;
  request->params = ParamsFor(model.task, wanted, parameters);
  request->include_logits =
      std::any_of(wanted.begin(), wanted.end(), [](const WantedOutput& output) {
        return output.tensor.name == kLogits && output.classification == 0;
      });
  outputs_ = InferOutputs(std::move(wanted), IsRaw(request_));
  return absl::OkStatus();
}

inference::packed::ModelInferResponse InferCodec::TakeResponse() {
  inference::packed::ModelInferResponse response;
  response.set_model_name(model_->name());
  response.set_model_version(absl::StrCat(model_->version->number()));
  response.set_id(request_.id());
  outputs_.MoveTo(&response);
  return response;
}

void Infer(const prediction::TransportEnvironment& environment,
           observability::Method counted_as, std::unique_ptr<call::Call> call) {
  api::PredictCall<InferCodec>::Run(environment, counted_as, std::move(call));
}

}  // namespace sfmamba::kserve
