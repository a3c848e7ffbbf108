#include "model/engine/network.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba::engine {
namespace {

// Returns the part of the checkpoint with the backbone's tensors. Their keys
// begin with "backbone." in a dense model's checkpoint. In a classifier's they
// have no prefix.
weights::StateDict::Scope BackboneScope(const model::ModelConfig& config,
                                        const weights::StateDict::Scope& root) {
  return config.task == model::VisionTask::kClassification
             ? root
             : root.Sub("backbone");
}

}  // namespace

Network::Network(const model::ModelConfig& config,
                 const weights::StateDict::Scope& scope,
                 const ops::Implementation& implementation)
    : config_(config),
      backbone_(backbones::MakeBackbone(
          config.backbone, config.image_size,
          config.task == model::VisionTask::kClassification
              ? backbones::FeatureMaps::kLast
              : backbones::FeatureMaps::kAll,
          BackboneScope(config, scope), implementation)),
      head_(heads::MakeHead(config, scope, implementation)),
      classifier_(head_->AsClassifier()) {}

absl::Status Network::Check(absl::Span<const model::ModelInput> images,
                            int fold_rows) const {
  for (size_t i = 0; i < images.size(); ++i) {
    const model::ModelInput& image = images[i];
    if ((image.pixels == nullptr) == (image.values == nullptr)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "image ", i, ": expected either pixels or values to be set"));
    }
    if (image.height < 1 || image.width < 1 ||
        config_.Padded(image.height) != config_.Padded(images[0].height) ||
        config_.Padded(image.width) != config_.Padded(images[0].width)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "image ", i, ": expected the first image's size ", images[0].height,
          "x", images[0].width,
          config_.pad_multiple > 1
              ? absl::StrCat(" up to a multiple of ", config_.pad_multiple)
              : "",
          ", got ", image.height, "x", image.width));
    }
  }
  if (images.empty()) return absl::OkStatus();
  // Vim's position embedding has one row per patch, so it fits only this image
  // size.
  const int size = config_.image_size;
  if (config_.backbone.architecture == model::Architecture::kVim &&
      (images[0].height != size || images[0].width != size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("image 0: expected the model's size ", size, "x", size,
                     ", got ", images[0].height, "x", images[0].width));
  }
  if (fold_rows == 0) return absl::OkStatus();
  for (const int64_t sequences :
       backbone_->Sequences(images.size(), config_.Padded(images[0].height),
                            config_.Padded(images[0].width))) {
    if (sequences % fold_rows != 0) {
      return absl::InvalidArgumentError(absl::StrCat("fold_rows ", fold_rows,
                                                     " does not divide ",
                                                     sequences, " sequences"));
    }
  }
  return absl::OkStatus();
}

std::vector<heads::ImageInfo> ToInfos(
    absl::Span<const model::ModelInput> images) {
  std::vector<heads::ImageInfo> infos;
  infos.reserve(images.size());
  for (const model::ModelInput& image : images) {
    heads::ImageInfo info;
    info.height = image.height;
    info.width = image.width;
    info.original_height =
        image.original_height > 0 ? image.original_height : image.height;
    info.original_width =
        image.original_width > 0 ? image.original_width : image.width;
    info.options = image.options;
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace sfmamba::engine
