#include "server/repository/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/weights/safetensors.h"
#include "server/batching/batch_runner.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

constexpr int kMostImages = 64;
// The maximum difference from an expected logit, as a fraction of the range of
// the expected logits.
constexpr double kLogitTolerance = 0.05;
constexpr float kSureScore = 0.5f;
constexpr float kScoreTolerance = 0.1f;
constexpr float kLeastOverlap = 0.8f;
// The minimum fraction of a class map's pixels that must have the expected
// class.
constexpr double kLeastEqual = 0.98;

using weights::DType;
using weights::SafetensorsFile;
using weights::TensorView;

absl::Status OfFile(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(kGoldenFile, ": ", message));
}

// Returns the values of the tensor "NAME.IMAGE", such as "logits.0". Returns
// INVALID_ARGUMENT if the tensor is missing or has another type or shape. A -1
// in `shape` allows any size.
template <typename T>
absl::StatusOr<std::vector<T>> Values(const SafetensorsFile& file,
                                      absl::string_view name, int image,
                                      DType dtype,
                                      const std::vector<int64_t>& shape) {
  const std::string full = absl::StrCat(name, ".", image);
  const TensorView* tensor = file.Find(full);
  if (tensor == nullptr) return OfFile(absl::StrCat(full, ": is missing"));
  bool fits = tensor->dtype == dtype && tensor->shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] < 0 || shape[i] == tensor->shape[i];
  }
  if (!fits) {
    return OfFile(absl::StrCat(
        full, ": got ", weights::DTypeName(tensor->dtype), " [",
        absl::StrJoin(tensor->shape, ", "), "], expected ",
        weights::DTypeName(dtype), " [", absl::StrJoin(shape, ", "), "]"));
  }
  std::vector<T> values(tensor->data.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
  }
  return values;
}

absl::StatusOr<model::Result> ReadClassification(const SafetensorsFile& file,
                                                 int image, int classes) {
  absl::StatusOr<std::vector<float>> logits =
      Values<float>(file, "logits", image, DType::kF32, {classes});
  if (!logits.ok()) return logits.status();
  model::Classification result;
  result.logits = *std::move(logits);
  return result;
}

absl::StatusOr<model::Result> ReadDetections(const SafetensorsFile& file,
                                             int image) {
  const auto boxes = Values<float>(file, "boxes", image, DType::kF32, {-1, 4});
  if (!boxes.ok()) return boxes.status();
  const int64_t count = boxes->size() / 4;
  const auto scores =
      Values<float>(file, "scores", image, DType::kF32, {count});
  if (!scores.ok()) return scores.status();
  const auto classes =
      Values<int32_t>(file, "classes", image, DType::kI32, {count});
  if (!classes.ok()) return classes.status();
  model::Detections result;
  for (int64_t i = 0; i < count; ++i) {
    const float* box = boxes->data() + 4 * i;
    result.detections.push_back({{box[0], box[1], box[2], box[3]},
                                 (*classes)[i],
                                 (*scores)[i],
                                 nullptr});
  }
  return result;
}

absl::StatusOr<model::Result> ReadSegmentation(const SafetensorsFile& file,
                                               int image, int height,
                                               int width) {
  absl::StatusOr<std::vector<uint16_t>> labels =
      Values<uint16_t>(file, "labels", image, DType::kU16, {height, width});
  if (!labels.ok()) return labels.status();
  model::Segmentation result;
  result.height = height;
  result.width = width;
  result.labels = *std::move(labels);
  return result;
}

absl::StatusOr<GoldenImage> ReadImage(const SafetensorsFile& file, int image,
                                      const model::ModelConfig& config) {
  absl::StatusOr<std::vector<uint8_t>> pixels =
      Values<uint8_t>(file, "image", image, DType::kU8, {-1, -1, 3});
  if (!pixels.ok()) return pixels.status();
  const TensorView& tensor = *file.Find(absl::StrCat("image.", image));
  if (pixels->empty()) {
    return OfFile(absl::StrCat("image.", image, ": has no pixels"));
  }
  GoldenImage golden;
  golden.height = static_cast<int>(tensor.shape[0]);
  golden.width = static_cast<int>(tensor.shape[1]);
  golden.pixels = *std::move(pixels);
  absl::StatusOr<model::Result> result;
  switch (config.task) {
    case model::VisionTask::kClassification:
      result = ReadClassification(file, image, config.num_classes);
      break;
    case model::VisionTask::kDetection:
      result = ReadDetections(file, image);
      break;
    case model::VisionTask::kSegmentation:
      result = ReadSegmentation(file, image, golden.height, golden.width);
      break;
  }
  if (!result.ok()) return result.status();
  golden.result = *std::move(result);
  return golden;
}

float Area(const model::Box& box) {
  return std::max(0.f, box.x2 - box.x1) * std::max(0.f, box.y2 - box.y1);
}

// Returns the intersection over union (IoU) of two boxes.
float Overlap(const model::Box& a, const model::Box& b) {
  const float both = Area({std::max(a.x1, b.x1), std::max(a.y1, b.y1),
                           std::min(a.x2, b.x2), std::min(a.y2, b.y2)});
  const float all = Area(a) + Area(b) - both;
  return all > 0 ? both / all : 1;
}

absl::Status Differs(absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("the result differs from the golden one: ", what));
}

absl::Status Check(const model::Classification& got,
                   const model::Classification& expected) {
  if (got.logits.size() != expected.logits.size()) {
    return Differs(absl::StrCat("got ", got.logits.size(), " logits, expected ",
                                expected.logits.size()));
  }
  const auto [least, most] =
      std::minmax_element(expected.logits.begin(), expected.logits.end());
  const double allowed = kLogitTolerance * (double{*most} - *least) + 1e-6;
  for (size_t i = 0; i < got.logits.size(); ++i) {
    // A comparison with NaN is false, so a NaN is reported as a difference.
    if (std::abs(got.logits[i] - expected.logits[i]) <= allowed) continue;
    return Differs(absl::StrCat("logit ", i, ": got ", got.logits[i],
                                ", expected ", expected.logits[i], " within ",
                                allowed));
  }
  return absl::OkStatus();
}

bool Has(const model::Detections& all, const model::Detection& wanted) {
  return std::any_of(all.detections.begin(), all.detections.end(),
                     [&wanted](const model::Detection& other) {
                       return other.class_id == wanted.class_id &&
                              std::abs(other.score - wanted.score) <=
                                  kScoreTolerance &&
                              Overlap(other.box, wanted.box) >= kLeastOverlap;
                     });
}

absl::Status Check(const model::Detections& got,
                   const model::Detections& expected) {
  if (!got.finite) return Differs("its values are not finite");
  for (const model::Detection& wanted : expected.detections) {
    if (wanted.score < kSureScore || Has(got, wanted)) continue;
    return Differs(absl::StrCat("expected a detection of class ",
                                wanted.class_id, ", score ", wanted.score));
  }
  for (const model::Detection& found : got.detections) {
    if (found.score < kSureScore + kScoreTolerance || Has(expected, found)) {
      continue;
    }
    return Differs(absl::StrCat("got a detection of class ", found.class_id,
                                ", score ", found.score, ", expected none"));
  }
  return absl::OkStatus();
}

absl::Status Check(const model::Segmentation& got,
                   const model::Segmentation& expected) {
  if (!got.finite) return Differs("its values are not finite");
  if (got.labels.size() != expected.labels.size()) {
    return Differs(absl::StrCat("got a map of ", got.labels.size(),
                                " pixels, expected ", expected.labels.size()));
  }
  int64_t equal = 0;
  for (size_t i = 0; i < got.labels.size(); ++i) {
    equal += got.labels[i] == expected.labels[i];
  }
  if (equal >= kLeastEqual * got.labels.size()) return absl::OkStatus();
  return Differs(absl::StrCat("got ", equal, " of ", got.labels.size(),
                              " pixels right, expected ", kLeastEqual * 100,
                              " %"));
}

// The tensors of a golden file, by name. The data of `views` is in `data`.
struct Tensors {
  std::map<std::string, TensorView> views;
  std::vector<std::vector<uint8_t>> data;

  template <typename T>
  void Add(const std::string& name, DType dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    data.emplace_back(bytes, bytes + values.size() * sizeof(T));
    views[name] = {dtype, std::move(shape), data.back()};
  }
};

void Add(const GoldenImage& image, int number, Tensors* tensors) {
  const std::string end = absl::StrCat(".", number);
  tensors->Add("image" + end, DType::kU8, {image.height, image.width, 3},
               image.pixels);
  if (const auto* c = std::get_if<model::Classification>(&image.result)) {
    tensors->Add("logits" + end, DType::kF32,
                 {static_cast<int64_t>(c->logits.size())}, c->logits);
  } else if (const auto* d = std::get_if<model::Detections>(&image.result)) {
    std::vector<float> boxes, scores;
    std::vector<int32_t> classes;
    for (const model::Detection& one : d->detections) {
      boxes.insert(boxes.end(),
                   {one.box.x1, one.box.y1, one.box.x2, one.box.y2});
      scores.push_back(one.score);
      classes.push_back(one.class_id);
    }
    const auto count = static_cast<int64_t>(scores.size());
    tensors->Add("boxes" + end, DType::kF32, {count, 4}, boxes);
    tensors->Add("scores" + end, DType::kF32, {count}, scores);
    tensors->Add("classes" + end, DType::kI32, {count}, classes);
  } else if (const auto* s = std::get_if<model::Segmentation>(&image.result)) {
    tensors->Add("labels" + end, DType::kU16, {s->height, s->width}, s->labels);
  }
}

}  // namespace

absl::Status CheckResult(const model::Result& got,
                         const model::Result& expected) {
  if (got.index() != expected.index()) {
    return Differs("it is for another task");
  }
  return std::visit(
      [&expected](const auto& result) {
        using T = std::decay_t<decltype(result)>;
        return Check(result, std::get<T>(expected));
      },
      got);
}

batching::Executor::Probe BlackProbe(const model::ModelConfig& config) {
  const bool keeps_ratio = config.resize == model::Resize::kKeepRatio;
  batching::Executor::Probe probe;
  probe.height = keeps_ratio ? config.short_side : config.image_size;
  probe.width = keeps_ratio ? config.long_side : config.image_size;
  probe.pixels.resize(size_t{3} * probe.height * probe.width);
  probe.check = [](const model::Result& result) -> absl::Status {
    if (batching::IsFinite(result)) return absl::OkStatus();
    return absl::InternalError(
        "the network's values for a black image are not finite");
  };
  return probe;
}

absl::StatusOr<std::vector<batching::Executor::Probe>> ReadGolden(
    const VersionPath& version, const model::ModelConfig& config) {
  std::vector<batching::Executor::Probe> probes;
  const absl::StatusOr<std::string> path = FindFile(version, kGoldenFile);
  if (absl::IsNotFound(path.status())) return probes;
  if (!path.ok()) return path.status();
  const auto file = SafetensorsFile::Open(*path);
  if (!file.ok()) return OfFile("is no safetensors file");
  for (int i = 0; (*file)->Find(absl::StrCat("image.", i)) != nullptr; ++i) {
    if (i == kMostImages) {
      return OfFile(absl::StrCat("expected at most ", kMostImages, " images"));
    }
    absl::StatusOr<GoldenImage> golden = ReadImage(**file, i, config);
    if (!golden.ok()) return golden.status();
    batching::Executor::Probe probe;
    probe.pixels = std::move(golden->pixels);
    probe.height = golden->height;
    probe.width = golden->width;
    probe.check = [i, expected =
                          std::move(golden->result)](const model::Result& got) {
      const absl::Status status = CheckResult(got, expected);
      return absl::Status(status.code(), absl::StrCat("golden image ", i, ": ",
                                                      status.message()));
    };
    probes.push_back(std::move(probe));
  }
  if (probes.empty()) return OfFile("image.0: is missing");
  return probes;
}

absl::Status WriteGolden(const std::string& version,
                         const std::vector<GoldenImage>& images) {
  Tensors tensors;
  // An image has at most four tensors, so `data` never grows beyond its
  // capacity and the views stay valid.
  tensors.data.reserve(4 * images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    Add(images[i], static_cast<int>(i), &tensors);
  }
  const fs::path path = fs::path(version) / kGoldenFile;
  // If creating the folder fails, writing the file reports the error.
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  return weights::WriteSafetensors(path.string(), tensors.views);
}

}  // namespace sfmamba::repository
