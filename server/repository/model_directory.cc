#include "server/repository/model_directory.h"

#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "model/weights/safetensors.h"
#include "server/repository/hugging_face_config.h"
#include "server/repository/timm_config.h"
#include "server/settings/setting.h"
#include "server/settings/sha256.h"
#include "server/settings/textproto.h"

namespace sfmamba::repository {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr size_t kMaxLabelsBytes = 16 << 20;

// The class names of COCO and, below, of ADE20K. The names are in the order of
// the dataset's classes.
constexpr const char* kCoco[] = {
    "person",        "bicycle",      "car",
    "motorcycle",    "airplane",     "bus",
    "train",         "truck",        "boat",
    "traffic light", "fire hydrant", "stop sign",
    "parking meter", "bench",        "bird",
    "cat",           "dog",          "horse",
    "sheep",         "cow",          "elephant",
    "bear",          "zebra",        "giraffe",
    "backpack",      "umbrella",     "handbag",
    "tie",           "suitcase",     "frisbee",
    "skis",          "snowboard",    "sports ball",
    "kite",          "baseball bat", "baseball glove",
    "skateboard",    "surfboard",    "tennis racket",
    "bottle",        "wine glass",   "cup",
    "fork",          "knife",        "spoon",
    "bowl",          "banana",       "apple",
    "sandwich",      "orange",       "broccoli",
    "carrot",        "hot dog",      "pizza",
    "donut",         "cake",         "chair",
    "couch",         "potted plant", "bed",
    "dining table",  "toilet",       "tv",
    "laptop",        "mouse",        "remote",
    "keyboard",      "cell phone",   "microwave",
    "oven",          "toaster",      "sink",
    "refrigerator",  "book",         "clock",
    "vase",          "scissors",     "teddy bear",
    "hair drier",    "toothbrush",
};

constexpr const char* kAde20k[] = {
    "wall",
    "building",
    "sky",
    "floor",
    "tree",
    "ceiling",
    "road",
    "bed",
    "windowpane",
    "grass",
    "cabinet",
    "sidewalk",
    "person",
    "earth",
    "door",
    "table",
    "mountain",
    "plant",
    "curtain",
    "chair",
    "car",
    "water",
    "painting",
    "sofa",
    "shelf",
    "house",
    "sea",
    "mirror",
    "rug",
    "field",
    "armchair",
    "seat",
    "fence",
    "desk",
    "rock",
    "wardrobe",
    "lamp",
    "bathtub",
    "railing",
    "cushion",
    "base",
    "box",
    "column",
    "signboard",
    "chest of drawers",
    "counter",
    "sand",
    "sink",
    "skyscraper",
    "fireplace",
    "refrigerator",
    "grandstand",
    "path",
    "stairs",
    "runway",
    "case",
    "pool table",
    "pillow",
    "screen door",
    "stairway",
    "river",
    "bridge",
    "bookcase",
    "blind",
    "coffee table",
    "toilet",
    "flower",
    "book",
    "hill",
    "bench",
    "countertop",
    "stove",
    "palm",
    "kitchen island",
    "computer",
    "swivel chair",
    "boat",
    "bar",
    "arcade machine",
    "hovel",
    "bus",
    "towel",
    "light",
    "truck",
    "tower",
    "chandelier",
    "awning",
    "streetlight",
    "booth",
    "television receiver",
    "airplane",
    "dirt track",
    "apparel",
    "pole",
    "land",
    "bannister",
    "escalator",
    "ottoman",
    "bottle",
    "buffet",
    "poster",
    "stage",
    "van",
    "ship",
    "fountain",
    "conveyer belt",
    "canopy",
    "washer",
    "plaything",
    "swimming pool",
    "stool",
    "barrel",
    "basket",
    "waterfall",
    "tent",
    "bag",
    "minibike",
    "cradle",
    "oven",
    "ball",
    "food",
    "step",
    "tank",
    "trade name",
    "microwave",
    "pot",
    "animal",
    "bicycle",
    "lake",
    "dishwasher",
    "screen",
    "blanket",
    "sculpture",
    "hood",
    "sconce",
    "vase",
    "traffic light",
    "tray",
    "ashcan",
    "fan",
    "pier",
    "crt screen",
    "plate",
    "monitor",
    "bulletin board",
    "shower",
    "radiator",
    "glass",
    "clock",
    "flag",
};

// Returns class names for a model without labels. A detector with 80 classes
// gets the names of COCO. A segmenter with 150 classes gets the names of
// ADE20K. All other models get "class_0", "class_1", ...
std::vector<std::string> ClassNames(model::VisionTask task, int classes) {
  if (task == model::VisionTask::kDetection && classes == std::size(kCoco)) {
    return {std::begin(kCoco), std::end(kCoco)};
  }
  if (task == model::VisionTask::kSegmentation &&
      classes == std::size(kAde20k)) {
    return {std::begin(kAde20k), std::end(kAde20k)};
  }
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(absl::StrCat("class_", i));
  return names;
}

// Reads config.textproto. Returns an empty configuration if `path` is empty.
absl::StatusOr<v1::ModelConfig> ReadConfig(const std::string& path) {
  if (path.empty()) return v1::ModelConfig();
  absl::StatusOr<std::string> text =
      server::ReadTextFile(kConfigFile, path, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  v1::ModelConfig proto;
  const absl::Status status =
      server::ParseTextProto(kConfigFile, *text, &proto);
  if (!status.ok()) return status;
  return proto;
}

absl::StatusOr<std::vector<std::string>> ReadLabels(const std::string& path) {
  absl::StatusOr<std::string> text =
      server::ReadTextFile(kLabelsFile, path, kMaxLabelsBytes);
  if (!text.ok()) return text.status();
  // Ignores blank lines at the end, which many editors add.
  std::vector<std::string> labels =
      absl::StrSplit(absl::StripTrailingAsciiWhitespace(*text), '\n');
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StripAsciiWhitespace(&labels[i]);
    if (base::Utf8Length(labels[i]) <= 0 ||
        absl::c_any_of(labels[i], absl::ascii_iscntrl)) {
      return absl::InvalidArgumentError(
          absl::StrCat(kLabelsFile, ": line ", i + 1,
                       " is blank, not UTF-8 or has a control character, "
                       "expected a label"));
    }
  }
  return labels;
}

absl::Status Mismatch(absl::string_view what, const std::string& got,
                      const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(kWeightsFile, ": ", what, ": got ", got, ", expected ",
                   expected, " by ", kConfigFile));
}

// Returns the types and shapes of all tensors in the files, by name. Does not
// read the tensors' data.
absl::StatusOr<std::map<std::string, weights::TensorView>> ReadTensors(
    const std::vector<std::string>& paths) {
  std::map<std::string, weights::TensorView> tensors;
  for (const std::string& path : paths) {
    const auto file = weights::ReadSafetensorsShapes(path);
    if (!file.ok()) return file.status();
    const absl::Status added = weights::AddTensors(*file, &tensors);
    if (!added.ok()) return added;
  }
  return tensors;
}

// Checks that the size and the SHA-256 of the weights match `stated`. Then
// stores the size and the SHA-256 of the weights in `directory`. In Hugging
// Face's layout, `stated` may be empty. In this case, nothing is checked.
absl::Status ReadWeights(const VersionFiles& files, const v1::Weights& stated,
                         ModelDirectory* directory) {
  const bool has_digest =
      files.hugging_face.empty() || stated.size_bytes() != 0;
  if (has_digest && stated.size_bytes() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kConfigFile, ": weights.size_bytes: got none, expected ",
                     files.weights_size, " as ", kWeightsFile, " has"));
  }
  constexpr int64_t kMostOfPointer = 1024;
  if (files.weights_size <= kMostOfPointer) {
    // A small file may be a Git LFS pointer, which is a short text in place of
    // the weights. ReadTextFile() returns an error for such a pointer.
    const absl::Status status =
        server::ReadTextFile(kWeightsFile, files.weights[0], kMostOfPointer)
            .status();
    if (!status.ok()) return status;
  }
  if (has_digest && files.weights_size != stated.size_bytes()) {
    return Mismatch("size in bytes", absl::StrCat(files.weights_size),
                    absl::StrCat(stated.size_bytes()));
  }
  absl::StatusOr<std::string> digest = server::FilesSha256(files.weights);
  if (!digest.ok()) {
    return absl::DataLossError(absl::StrCat(
        kWeightsFile, ": got a file that cannot be read, expected ",
        files.weights_size, " bytes"));
  }
  const std::string wanted = absl::AsciiStrToLower(stated.sha256());
  if (has_digest && wanted.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kConfigFile, ": weights.sha256: got none, expected ",
                     *digest, " as ", kWeightsFile, " has"));
  }
  if (!wanted.empty() && *digest != wanted) {
    return Mismatch("sha256", *digest, wanted);
  }
  // Format errors are ignored here, because loading the model reports them.
  const auto tensors = ReadTensors(files.weights);
  if (tensors.ok()) {
    for (const auto& [name, tensor] : *tensors) {
      directory->weights_elements +=
          std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1},
                          std::multiplies<>());
    }
  }
  directory->weights_paths = files.weights;
  directory->weights_size = files.weights_size;
  directory->weights_sha256 = *std::move(digest);
  return absl::OkStatus();
}

absl::Status OfWeights(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(kWeightsFile, ": ", status.message()));
}

// For a detector or a segmenter, returns the shapes that the headers of the
// weights' files contain. For a classifier, returns empty shapes.
absl::StatusOr<weights::WeightShapes> ReadShapes(
    model::VisionTask task, const std::vector<std::string>& paths) {
  if (task == model::VisionTask::kClassification || paths.empty()) {
    return weights::WeightShapes();
  }
  const auto tensors = ReadTensors(paths);
  if (!tensors.ok()) return tensors.status();
  auto shapes = weights::ReadWeightShapes(*tensors);
  if (!shapes.ok()) return OfWeights(shapes.status());
  return shapes;
}

// Clears the list of a field in `onto` if the same field in `from` has values.
// MergeFrom(from) would otherwise append these values to the list in `onto`
// instead of replacing the list.
void ClearLists(const google::protobuf::Message& from,
                google::protobuf::Message* onto) {
  const google::protobuf::Reflection& reflection = *from.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(from, &fields);
  for (const auto* field : fields) {
    if (field->is_repeated()) {
      reflection.ClearField(onto, field);
    } else if (server::IsGroup(*field)) {
      ClearLists(reflection.GetMessage(from, field),
                 reflection.MutableMessage(onto, field));
    }
  }
}

// Returns true if config.textproto is sufficient to describe the model without
// config.json. tools/convert_checkpoint.py writes such files.
bool IsComplete(const v1::ModelConfig& config) {
  return !config.backbone().variant().empty() &&
         !config.weights().sha256().empty();
}

absl::StatusOr<HuggingFaceTexts> ReadTexts(const VersionFiles& files) {
  HuggingFaceTexts texts;
  absl::StatusOr<std::string> text = server::ReadTextFile(
      kHuggingFaceFile, files.hugging_face, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  texts.config = *std::move(text);
  if (files.preprocessor.empty()) return texts;
  text = server::ReadTextFile(kPreprocessorFile, files.preprocessor,
                              kMaxConfigBytes);
  if (!text.ok()) return text.status();
  texts.preprocessor = *std::move(text);
  return texts;
}

// Finds the model family by the names of the tensors. Then reads config.json
// with the functions for this family.
absl::StatusOr<HuggingFaceConfig> ReadFamily(
    const HuggingFaceTexts& texts,
    const std::map<std::string, weights::TensorView>& tensors,
    const v1::ModelConfig& stated, bool with_labels) {
  if (weights::IsMambaOut(tensors)) {
    const auto shapes = weights::ReadMambaOutShapes(tensors);
    if (!shapes.ok()) return OfWeights(shapes.status());
    return ReadMambaOutConfig(texts, *shapes, stated, with_labels);
  }
  if (weights::IsEfficientVim(tensors)) {
    const auto classes = weights::ReadEfficientVimClasses(tensors);
    if (!classes.ok()) return OfWeights(classes.status());
    return ReadEfficientVimConfig(texts, *classes, stated, with_labels);
  }
  if (weights::IsVMamba(tensors)) {
    const auto shapes = weights::ReadVMambaShapes(tensors);
    if (!shapes.ok()) return OfWeights(shapes.status());
    return ReadVMambaConfig(texts, *shapes, with_labels);
  }
  const auto shapes = weights::ReadClassifierShapes(tensors);
  if (!shapes.ok()) return OfWeights(shapes.status());
  return ReadHuggingFaceConfig(texts, *shapes, stated, with_labels);
}

// Adds the values of config.json to `config`. Values that `config` already
// contains have priority. If `directory` has no labels, also reads the labels.
absl::Status AddHuggingFace(const VersionFiles& files, v1::ModelConfig* config,
                            ModelDirectory* directory) {
  const absl::StatusOr<HuggingFaceTexts> texts = ReadTexts(files);
  if (!texts.ok()) return texts.status();
  const auto tensors = ReadTensors(files.weights);
  if (!tensors.ok()) return tensors.status();
  std::vector<std::string>& labels = directory->labels;
  absl::StatusOr<HuggingFaceConfig> found =
      ReadFamily(*texts, *tensors, *config, labels.empty());
  if (!found.ok()) return found.status();
  ClearLists(*config, &found->config);
  found->config.MergeFrom(*config);
  *config = std::move(found->config);
  if (labels.empty()) labels = std::move(found->labels);
  directory->warnings = std::move(found->warnings);
  return absl::OkStatus();
}

// Returns the text for ModelDirectory::network.
std::string NetworkOf(v1::ModelConfig proto) {
  proto.clear_batching();
  proto.clear_precision();
  proto.clear_allow_int8();
  proto.mutable_weights()->clear_sha256();
  return proto.ShortDebugString();
}

// Returns the error `status` with `source` in front of its message. `source`
// contains the names of the configuration's files.
absl::Status OfConfig(const std::string& source, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(source, ": ", status.message()));
}

}  // namespace

absl::StatusOr<ModelPurpose> ReadPurpose(const VersionPath& path) {
  const absl::StatusOr<VersionFiles> files = FindVersionFiles(path);
  if (!files.ok()) return files.status();
  const absl::StatusOr<v1::ModelConfig> proto = ReadConfig(files->config);
  if (!proto.ok()) return proto.status();
  return ModelPurpose{ToTask(proto->task()), proto->default_for_task()};
}

absl::StatusOr<ModelDirectory> ReadModelDirectory(const VersionPath& path,
                                                  bool random_init,
                                                  const v1::Batching& batching,
                                                  bool on_gpus) {
  absl::StatusOr<VersionFiles> files = FindVersionFiles(path);
  if (!files.ok()) return files.status();
  absl::StatusOr<v1::ModelConfig> proto = ReadConfig(files->config);
  if (!proto.ok()) return proto.status();
  if (IsComplete(*proto)) files->hugging_face.clear();
  const bool hugging_face = !files->hugging_face.empty();
  if (files->labels.empty() && !hugging_face && !random_init) {
    return absl::NotFoundError(
        absl::StrCat(kLabelsFile, ": there is no such file"));
  }
  if (files->weights.empty() && (hugging_face || !random_init)) {
    return NoWeights(path);
  }
  ModelDirectory directory;
  directory.on_gpus = on_gpus;
  if (!files->labels.empty()) {
    absl::StatusOr<std::vector<std::string>> labels = ReadLabels(files->labels);
    if (!labels.ok()) return labels.status();
    directory.labels = *std::move(labels);
  }
  directory.config_source = kConfigFile;
  if (hugging_face) {
    const absl::Status status = AddHuggingFace(*files, &*proto, &directory);
    if (!status.ok()) return status;
    directory.config_source =
        files->config.empty()
            ? kHuggingFaceFile
            : absl::StrCat(kHuggingFaceFile, ", ", kConfigFile);
  }
  proto->mutable_batching()->MergeFrom(batching);
  const model::VisionTask task = ToTask(proto->task());
  const absl::StatusOr<weights::WeightShapes> shapes =
      ReadShapes(task, files->weights);
  if (!shapes.ok()) return shapes.status();
  absl::StatusOr<model::ModelConfig> config =
      ToModelConfig(*proto, directory.labels.size(), *shapes);
  if (!config.ok()) return OfConfig(directory.config_source, config.status());
  directory.config = *std::move(config);
  if (directory.labels.empty()) {
    directory.labels = ClassNames(task, directory.config.num_classes);
  }
  directory.batch = ToBatchOptions(proto->batching(), task, on_gpus);
  directory.precision = proto->precision();
  directory.allow_int8 = proto->allow_int8();
  proto->set_num_classes(directory.config.num_classes);
  directory.network = NetworkOf(*proto);
  if (files->weights.empty()) return directory;
  const absl::Status status = ReadWeights(*files, proto->weights(), &directory);
  if (!status.ok()) return status;
  return directory;
}

bool LooksComplete(const VersionPath& path, bool random_init) {
  const absl::StatusOr<VersionFiles> files = FindVersionFiles(path);
  if (!files.ok()) return false;
  const absl::StatusOr<v1::ModelConfig> config = ReadConfig(files->config);
  if (!config.ok()) return false;
  if (files->weights.empty()) return random_init;
  if (!files->hugging_face.empty() && config->weights().size_bytes() == 0) {
    return ReadTensors(files->weights).ok();
  }
  return files->weights_size == config->weights().size_bytes() &&
         (random_init || !files->labels.empty() ||
          !files->hugging_face.empty());
}

}  // namespace sfmamba::repository
