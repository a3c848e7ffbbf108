#include "server/api/kserve/infer_outputs.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/utf8.h"
#include "server/api/kserve/infer_parameters.h"
#include "server/call/wire/wire_cursor.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"

namespace sfmamba::kserve {
namespace {

// The maximum number of bytes of a name in an error message.
constexpr size_t kMaxNameShown = 64;
// The size in bytes of the length that precedes a BYTES element.
constexpr int kLengthBytes = 4;

// Appends a number in little-endian order.
template <typename T>
void Append(T value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Appends a non-negative number of type INT32 or UINT8. If `raw` is true,
// appends the bytes of the number. If `raw` is false, encodes the number as a
// varint.
template <typename T>
void AppendInteger(T value, bool raw, std::string* to) {
  raw ? Append(value, to) : call::AppendVarint(value, to);
}

std::string FloatRow(absl::Span<const float> values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

// Returns the top `count` classes as BYTES elements with length prefixes.
std::string ClassificationRow(const v1::ClassifyResult& result, int count) {
  std::string row;
  for (int i = 0; i < count; ++i) {
    const v1::Category& category = result.categories(i);
    std::string text =
        absl::StrFormat("%f:%d", category.score(), category.class_id());
    if (!category.label().empty()) {
      absl::StrAppend(&text, ":", category.label());
    }
    Append(static_cast<uint32_t>(text.size()), &row);
    row += text;
  }
  return row;
}

// Fills one row of an output from the result for one image.
struct FillRow {
  const WantedOutput& output;
  const std::vector<float>& logits;  // Used for classifiers only.
  bool raw;
  std::string* row;

  void operator()(const v1::ClassifyResult& result) const {
    if (output.tensor.name == kEmbedding) {
      *row = FloatRow(result.embedding());
    } else if (output.classification > 0) {
      *row = ClassificationRow(result, ClassificationCount(output));
    } else {
      *row = FloatRow(logits);
    }
  }

  // The output tensors for boxes, scores and classes have a fixed number of
  // slots, which is the model's maximum number of objects per image. If the
  // model detects fewer objects, the unused slots at the end are zero.
  void operator()(const v1::DetectResult& result) const {
    const absl::string_view name = output.tensor.name;
    if (name == kNumDetections) {
      return AppendInteger<int32_t>(result.detections_size(), raw, row);
    }
    for (int i = 0; i < output.tensor.dims[0]; ++i) {
      const v1::Detection& object = i < result.detections_size()
                                        ? result.detections(i)
                                        : v1::Detection::default_instance();
      if (name == kBoxes) {
        const v1::BoundingBox& box = object.box();
        for (float edge :
             {box.x_min(), box.y_min(), box.x_max(), box.y_max()}) {
          Append(edge, row);
        }
      } else if (name == kScores) {
        Append(object.score(), row);
      } else {
        AppendInteger<int32_t>(object.class_id(), raw, row);
      }
    }
  }

  void operator()(v1::SegmentResult& result) const {
    std::string& map = *result.mutable_raw()->mutable_data();
    if (result.raw().bytes_per_pixel() == 1) {
      // A class map (one class index per pixel) may have several MB, so its
      // bytes are moved and not copied.
      if (raw) {
        *row = std::move(map);
        return;
      }
      for (const char c : map) call::AppendVarint(static_cast<uint8_t>(c), row);
      return;
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(map.data());
    row->reserve(raw ? 2 * map.size() : map.size());
    for (size_t i = 0; i < map.size(); i += 2) {
      AppendInteger<int32_t>(bytes[i] | bytes[i + 1] << 8, raw, row);
    }
  }
};

// Moves a tensor's bytes into the field of `contents` that matches `datatype`.
void SetContents(absl::string_view datatype, std::string data,
                 inference::packed::TensorContents* contents) {
  if (datatype == "FP32") {
    contents->set_fp32_contents(std::move(data));
  } else if (datatype == "INT32") {
    contents->set_int_contents(std::move(data));
  } else if (datatype == "UINT8") {
    contents->set_uint_contents(std::move(data));
  } else {
    for (size_t at = 0; at < data.size();) {
      uint32_t length;
      std::memcpy(&length, &data[at], kLengthBytes);
      at += kLengthBytes;
      contents->add_bytes_contents(data.substr(at, length));
      at += length;
    }
  }
}

absl::Status ReadWanted(
    const inference::ModelInferRequest::InferRequestedOutputTensor& output,
    const std::vector<ModelTensor>& tensors, WantedOutput* wanted) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&output](const ModelTensor& tensor) {
                                    return tensor.name == output.name();
                                  });
  if (found == tensors.end()) {
    std::string names;
    for (const ModelTensor& tensor : tensors) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", tensor.name);
    }
    return server::InvalidField(
        ".name",
        absl::StrCat("got \"", base::Utf8Prefix(output.name(), kMaxNameShown),
                     "\", expected one of ", names));
  }
  wanted->tensor = *found;
  absl::Status status = CheckNoRegion(output.parameters());
  if (!status.ok()) return status;
  status = ReadOutputParameters(output.parameters(), &wanted->classification);
  if (status.ok() && wanted->classification > 0 && found->name != kLogits) {
    return server::InvalidField(".parameters.classification",
                                "expected none but of logits");
  }
  return status;
}

}  // namespace

int ClassificationCount(const WantedOutput& output) {
  return std::min<int64_t>(output.classification, output.tensor.dims[0]);
}

absl::Status ChooseOutputs(const inference::ModelInferRequest& request,
                           const model::ModelConfig& model,
                           std::vector<WantedOutput>* wanted) {
  wanted->clear();
  const std::vector<ModelTensor> tensors = OutputsOf(model);
  if (request.outputs().empty()) {
    for (const ModelTensor& tensor : tensors) {
      wanted->emplace_back().tensor = tensor;
    }
    return absl::OkStatus();
  }
  for (int i = 0; i < request.outputs_size(); ++i) {
    WantedOutput output;
    absl::Status status = ReadWanted(request.outputs(i), tensors, &output);
    for (const WantedOutput& other : *wanted) {
      if (status.ok() && other.tensor.name == output.tensor.name) {
        status = server::InvalidField(".name", "expected each output once");
      }
    }
    if (!status.ok()) {
      return absl::IsInvalidArgument(status)
                 ? server::InField(absl::StrCat("outputs[", i, "]"), status)
                 : status;
    }
    wanted->push_back(std::move(output));
  }
  return absl::OkStatus();
}

int64_t InferOutputs::SetAnswer(int image, prediction::Answer answer) {
  Image& own = images_[image];
  if (const auto* map = std::get_if<v1::SegmentResult>(&answer.result)) {
    own.height = map->height();
    own.width = map->width();
  }
  int64_t bytes = 0;
  own.rows.resize(wanted_.size());
  for (size_t i = 0; i < wanted_.size(); ++i) {
    std::visit(FillRow{wanted_[i], answer.logits, raw_, &own.rows[i]},
               answer.result);
    bytes += own.rows[i].size();
  }
  return bytes;
}

int64_t InferOutputs::Bytes() const {
  int64_t bytes = 0;
  for (const Image& image : images_) {
    for (const std::string& row : image.rows) bytes += row.size();
  }
  return bytes;
}

std::vector<int64_t> InferOutputs::ShapeOf(size_t i) const {
  const WantedOutput& output = wanted_[i];
  std::vector<int64_t> shape = {static_cast<int64_t>(images_.size())};
  if (output.classification > 0) {
    shape.push_back(ClassificationCount(output));
  } else if (output.tensor.name == kClassMap) {
    shape.insert(shape.end(), {images_[0].height, images_[0].width});
  } else if (output.tensor.name == kEmbedding) {
    shape.push_back(images_[0].rows[i].size() / sizeof(float));
  } else {
    shape.insert(shape.end(), output.tensor.dims.begin(),
                 output.tensor.dims.end());
  }
  return shape;
}

void InferOutputs::MoveTo(inference::packed::ModelInferResponse* response) {
  for (size_t i = 0; i < wanted_.size(); ++i) {
    const WantedOutput& output = wanted_[i];
    auto* tensor = response->add_outputs();
    tensor->set_name(std::string(output.tensor.name));
    const absl::string_view datatype =
        output.classification > 0 ? "BYTES" : output.tensor.datatype;
    tensor->set_datatype(std::string(datatype));
    for (const int64_t side : ShapeOf(i)) tensor->add_shape(side);
    std::string data = std::move(images_[0].rows[i]);
    for (size_t n = 1; n < images_.size(); ++n) data += images_[n].rows[i];
    if (raw_) {
      response->add_raw_output_contents(std::move(data));
    } else {
      SetContents(datatype, std::move(data), tensor->mutable_contents());
    }
  }
  images_.clear();
}

}  // namespace sfmamba::kserve
