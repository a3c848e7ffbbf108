#include "client/commands/bench/bench_inputs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/commands/inputs.h"
#include "client/commands/task_model.h"
#include "client/picture/resize.h"

namespace sfmamba::client {
namespace {

constexpr char kTensorPrefix[] = "tensor:";

TracePictures::key_type KeyOf(const TraceRequest& request,
                              const std::string& picture) {
  return {request.method, request.model, picture};
}

v1::Model::Task TaskOf(const std::string& method) {
  return method == "detect"    ? v1::Model::DETECTION
         : method == "segment" ? v1::Model::SEGMENTATION
                               : v1::Model::CLASSIFICATION;
}

template <typename Message>
Message MakeMessage(const TraceRequest& request,
                    const TracePictures& pictures) {
  Message message;
  message.set_model(request.model);
  message.mutable_options()->set_include_timing(true);
  message.mutable_options()->set_priority(request.priority);
  for (const std::string& name : request.pictures) {
    *message.add_images() = pictures.at(KeyOf(request, name));
  }
  return message;
}

// Returns the index of `name` in `names`. Appends `name` if it is new.
int IndexOf(const std::string& name, std::vector<std::string>* names) {
  const auto found = std::find(names->begin(), names->end(), name);
  const int index = static_cast<int>(found - names->begin());
  if (found == names->end()) names->push_back(name);
  return index;
}

}  // namespace

absl::Status ReadPictures(const Trace& trace, const std::string& folder,
                          TracePictures* pictures) {
  for (const TraceRequest& request : trace.requests) {
    for (const std::string& name : request.pictures) {
      if (absl::StartsWith(name, kTensorPrefix)) continue;
      const auto [picture, is_new] =
          pictures->try_emplace(KeyOf(request, name));
      if (!is_new) continue;
      absl::StatusOr<std::string> bytes =
          ReadFile(folder.empty() || absl::StartsWith(name, "/")
                       ? name
                       : absl::StrCat(folder, "/", name));
      if (!bytes.ok()) return bytes.status();
      picture->second.set_encoded(*std::move(bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status ResizePictures(absl::Duration timeout, VisionClient* client,
                            TracePictures* pictures) {
  for (auto& [key, image] : *pictures) {
    const auto& [method, model_name, file] = key;
    const absl::StatusOr<v1::Model> model =
        FindModel(model_name, TaskOf(method), timeout, client);
    if (!model.ok()) return model.status();
    absl::StatusOr<v1::Image> resized = ResizeFor(*model, image.encoded());
    if (!resized.ok()) {
      return absl::Status(
          resized.status().code(),
          absl::StrCat("'", file, "': ", resized.status().message()));
    }
    image = *std::move(resized);
  }
  return absl::OkStatus();
}

absl::Status MakeTensors(const Trace& trace, uint64_t seed,
                         absl::Duration timeout, VisionClient* client,
                         TracePictures* pictures) {
  for (const TraceRequest& request : trace.requests) {
    for (const std::string& picture : request.pictures) {
      absl::string_view name = picture;
      const auto key = KeyOf(request, picture);
      if (!absl::ConsumePrefix(&name, kTensorPrefix) ||
          pictures->count(key) > 0) {
        continue;
      }
      const absl::StatusOr<v1::Model> model =
          FindModel(request.model, TaskOf(request.method), timeout, client);
      if (!model.ok()) return model.status();
      v1::Tensor::DataType type = v1::Tensor::DATA_TYPE_UNSPECIFIED;
      v1::Tensor::DataType_Parse(absl::AsciiStrToUpper(name), &type);
      absl::StatusOr<v1::Image> image = SyntheticTensor(*model, type, seed);
      if (!image.ok()) return image.status();
      (*pictures)[key] = *std::move(image);
    }
  }
  return absl::OkStatus();
}

Load MakeLoad(const Trace& trace, const TracePictures& pictures,
              absl::Duration deadline) {
  Load load;
  load.class_names.clear();
  for (const TraceRequest& request : trace.requests) {
    LoadRequest& made = load.requests.emplace_back();
    made.deadline = request.deadline.value_or(deadline);
    made.class_index = IndexOf(request.class_name, &load.class_names);
    if (request.method == "segment") {
      made.message = MakeMessage<v1::SegmentRequest>(request, pictures);
    } else if (request.method == "detect") {
      v1::DetectRequest detect =
          MakeMessage<v1::DetectRequest>(request, pictures);
      detect.mutable_params()->set_mask_encoding(v1::DetectParams::COCO_RLE);
      made.message = std::move(detect);
    } else {
      made.message = MakeMessage<v1::ClassifyRequest>(request, pictures);
    }
  }
  load.arrivals = trace.arrivals;
  return load;
}

}  // namespace sfmamba::client
