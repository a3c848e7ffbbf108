#include "model/weights/weight_shapes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "model/weights/checkpoint_keys.h"

namespace sfmamba::weights {
namespace {

// The maximum size of a tensor's axis. It fits an int, and every model has far
// fewer channels and classes.
constexpr int64_t kMaxSize = 1 << 24;

class Reader {
 public:
  explicit Reader(const std::map<std::string, TensorView>& tensors)
      : tensors_(WithoutPrefixes(tensors)) {}

  bool Has(const std::string& key) const { return tensors_.count(key) > 0; }

  // Returns the size of the tensor `key` along axis `axis`. The tensor must
  // have `dims` axes, and this size must be from 1 to kMaxSize. If not, or if
  // the tensor is missing, records an error and returns 1.
  int Size(const std::string& key, int dims, int axis) {
    const auto it = tensors_.find(key);
    if (it == tensors_.end()) {
      status_.Update(
          absl::InvalidArgumentError(absl::StrCat(key, ": missing")));
      return 1;
    }
    const std::vector<int64_t>& shape = it->second.shape;
    if (shape.size() != dims || shape[axis] < 1 || shape[axis] > kMaxSize) {
      status_.Update(absl::InvalidArgumentError(
          absl::StrCat(key, ": expected ", dims, " axes of at least 1, got [",
                       absl::StrJoin(shape, ", "), "]")));
      return 1;
    }
    return shape[axis];
  }

  // Returns the size of a tensor along its first axis. The tensor must have at
  // least one axis. If the tensor is missing or the size is not from 1 to
  // kMaxSize, records an error and returns 1.
  int Rows(const std::string& key) {
    const auto it = tensors_.find(key);
    const size_t dims = it == tensors_.end() ? 0 : it->second.shape.size();
    // A tensor without axes is an error, because Size() expects one axis.
    return Size(key, std::max(1, static_cast<int>(dims)), 0);
  }

  // Records an error if `fits` is false.
  void Check(bool fits, absl::string_view key, absl::string_view message) {
    if (fits) return;
    status_.Update(
        absl::InvalidArgumentError(absl::StrCat(key, ": ", message)));
  }

  // Returns how many of the keys <before>0<after>, <before>1<after>, ... exist,
  // up to the first gap.
  int Count(const std::string& before, const std::string& after) const {
    int count = 0;
    while (Has(absl::StrCat(before, count, after))) ++count;
    return count;
  }

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const absl::Status& status() const { return status_; }

 private:
  const std::map<std::string, TensorView> tensors_;
  absl::Status status_;  // The first error.
};

void ReadSegmenter(Reader& reader, WeightShapes* shapes) {
  const std::string logits = "decode_head.conv_seg.weight";
  if (!reader.Has(logits)) return;
  shapes->num_classes = reader.Size(logits, 4, 0);
  shapes->segmentation_channels = reader.Size(logits, 4, 1);
}

// Returns the prefix of the keys of a detector's first box head or mask head.
// `heads` is "bbox_head" or "mask_head". `stages` is 0 if there is only one
// head of each kind and keys do not number it. Otherwise keys number the heads.
std::string FirstHead(const std::string& heads, int stages) {
  return absl::StrCat("roi_head.", heads, stages > 0 ? ".0." : ".");
}

void ReadMasks(Reader& reader, const std::string& head, WeightShapes* shapes) {
  const std::string logits = head + "conv_logits.weight";
  shapes->masks = reader.Has(logits);
  if (!*shapes->masks) return;
  shapes->mask_convs = reader.Count(head + "convs.", ".conv.weight");
  // If there is only one class, masks for each class and class-agnostic masks
  // (one mask for all classes) have weights of the same shape. Such masks are
  // treated as masks for each class.
  shapes->class_agnostic_masks =
      *shapes->num_classes > 1 && reader.Size(logits, 4, 0) == 1;
}

void ReadDetector(Reader& reader, WeightShapes* shapes) {
  const std::string rpn = "rpn_head.rpn_cls.weight";
  if (!reader.Has(rpn)) return;
  shapes->anchor_ratios = reader.Size(rpn, 4, 0);
  shapes->channels = reader.Size(rpn, 4, 1);

  const int stages = reader.Count("roi_head.bbox_head.", ".fc_cls.weight");
  const std::string box = FirstHead("bbox_head", stages);
  const std::string logits = box + "fc_cls.weight";
  shapes->box_stages = stages > 0 ? stages : 1;
  shapes->num_classes = reader.Size(logits, 2, 0) - 1;
  shapes->fc_width = reader.Size(logits, 2, 1);
  shapes->box_convs = reader.Count(box + "shared_convs.", ".conv.weight");
  shapes->box_fcs = reader.Count(box + "shared_fcs.", ".weight");
  shapes->class_agnostic_boxes =
      *shapes->num_classes > 1 && reader.Size(box + "fc_reg.weight", 2, 0) == 4;
  const int flat = reader.Size(box + "shared_fcs.0.weight", 2, 1);
  // Size() returns at least 1 even after an error, so this never divides by 0.
  const int side = std::lround(std::sqrt(flat / *shapes->channels));
  shapes->box_roi_size = side > 0 ? side : 1;
  ReadMasks(reader, FirstHead("mask_head", stages), shapes);
}

// Returns whether any block of the last two stages has the tensor `name`.
bool AnyTokenBlockHas(const Reader& reader, const std::array<int, 4>& depths,
                      absl::string_view name) {
  for (int stage = 2; stage < 4; ++stage) {
    for (int block = 0; block < depths[stage]; ++block) {
      if (reader.Has(
              absl::StrCat("levels.", stage, ".blocks.", block, ".", name))) {
        return true;
      }
    }
  }
  return false;
}

// Records an error unless the tensors belong to VMamba's second version, with
// one state per channel. VMamba's first version and ablations of VMamba have
// additional tensors, lack tensors, or have tensors with other shapes.
void CheckVMambaVersion(Reader* reader) {
  constexpr absl::string_view kOthers[] = {
      ".downsample.reduction.", ".conv2d.bias", ".out_norm.0.", ".out_norm.1."};
  for (const auto& [key, view] : reader->tensors()) {
    for (const absl::string_view other : kOthers) {
      reader->Check(!absl::StrContains(key, other), key,
                    "got one, expected none, as VMamba's second version");
    }
  }
  const std::string first = "patch_embed.0.weight";
  const int kernel = reader->Size(first, 4, 2);
  reader->Check(kernel == 3, first,
                absl::StrCat("got ", kernel,
                             " pixels a side, expected 3, as "
                             "VMamba's second version"));
  const std::string block = "layers.0.blocks.0.";
  const std::string input = block + "op.in_proj.weight";
  const int inner = reader->Size(block + "op.conv2d.weight", 4, 0);
  const int projected = reader->Rows(input);
  reader->Check(projected == inner, input,
                absl::StrCat("got ", projected, " rows, expected ", inner,
                             projected == 2 * inner ? ": it has a gate" : ""));
  const std::string states = block + "op.A_logs";
  const int count = reader->Size(states, 2, 1);
  reader->Check(count == 1, states,
                absl::StrCat("got ", count, " states, expected 1"));
  reader->Rows(block + "mlp.fc1.weight");
}

}  // namespace

absl::StatusOr<ClassifierShapes> ReadClassifierShapes(
    const std::map<std::string, TensorView>& tensors) {
  Reader reader(tensors);
  ClassifierShapes shapes;
  shapes.in_dim = reader.Size("patch_embed.conv_down.0.weight", 4, 0);
  shapes.dim = reader.Size("patch_embed.conv_down.3.weight", 4, 0);
  for (int stage = 0; stage < 4; ++stage) {
    const std::string blocks = absl::StrCat("levels.", stage, ".blocks.");
    shapes.depths[stage] = reader.Count(blocks, ".norm1.weight");
  }
  shapes.layer_scale = AnyTokenBlockHas(reader, shapes.depths, "gamma_1");
  shapes.attention =
      AnyTokenBlockHas(reader, shapes.depths, "mixer.qkv.weight");
  shapes.learnable_tokens = reader.Has("levels.3.aux_head");
  shapes.num_classes = reader.Size("head.weight", 2, 0);
  if (!reader.status().ok()) return reader.status();
  return shapes;
}

bool IsMambaOut(const std::map<std::string, TensorView>& tensors) {
  const Reader reader(tensors);
  return reader.Has("stages.0.blocks.0.fc1.weight") &&
         reader.Has("stages.0.blocks.0.conv.weight");
}

absl::StatusOr<MambaOutShapes> ReadMambaOutShapes(
    const std::map<std::string, TensorView>& tensors) {
  Reader reader(tensors);
  MambaOutShapes shapes;
  for (int stage = 0; stage < 4; ++stage) {
    const std::string blocks = absl::StrCat("stages.", stage, ".blocks.");
    shapes.widths[stage] = reader.Size(blocks + "0.fc2.weight", 2, 0);
    shapes.hidden[stage] = reader.Size(blocks + "0.fc2.weight", 2, 1);
    shapes.conv[stage] = reader.Size(blocks + "0.conv.weight", 4, 0);
    shapes.depths[stage] = reader.Count(blocks, ".fc1.weight");
  }
  shapes.rw = reader.Has("stages.0.blocks.0.ls.gamma");
  shapes.num_classes = reader.Size("head.fc.weight", 2, 0);
  if (!reader.status().ok()) return reader.status();
  return shapes;
}

bool IsEfficientVim(const std::map<std::string, TensorView>& tensors) {
  return Reader(tensors).Has("stages.0.blocks.0.mixer.BCdt_proj.conv.weight");
}

absl::StatusOr<int> ReadEfficientVimClasses(
    const std::map<std::string, TensorView>& tensors) {
  Reader reader(tensors);
  const int classes = reader.Size("heads.0.weight", 2, 0);
  if (!reader.status().ok()) return reader.status();
  return classes;
}

bool IsVMamba(const std::map<std::string, TensorView>& tensors) {
  return Reader(tensors).Has("layers.0.blocks.0.op.A_logs");
}

absl::StatusOr<VMambaShapes> ReadVMambaShapes(
    const std::map<std::string, TensorView>& tensors) {
  Reader reader(tensors);
  CheckVMambaVersion(&reader);
  VMambaShapes shapes;
  shapes.dim = reader.Size("patch_embed.5.weight", 4, 0);
  const std::string mixer = "layers.0.blocks.0.op.";
  const int inner = reader.Size(mixer + "conv2d.weight", 4, 0);
  shapes.ssm_ratio = inner / shapes.dim;
  reader.Check(inner == shapes.dim || inner == 2 * shapes.dim,
               mixer + "conv2d.weight",
               absl::StrCat("got ", inner, " channels, expected ", shapes.dim,
                            " or ", 2 * shapes.dim));
  for (int stage = 0; stage < 4; ++stage) {
    shapes.depths[stage] =
        reader.Count(absl::StrCat("layers.", stage, ".blocks."), ".op.A_logs");
  }
  shapes.num_classes = reader.Size("classifier.head.weight", 2, 0);
  if (!reader.status().ok()) return reader.status();
  return shapes;
}

absl::StatusOr<WeightShapes> ReadWeightShapes(
    const std::map<std::string, TensorView>& tensors) {
  Reader reader(tensors);
  WeightShapes shapes;
  ReadSegmenter(reader, &shapes);
  ReadDetector(reader, &shapes);
  if (!reader.status().ok()) return reader.status();
  return shapes;
}

}  // namespace sfmamba::weights
