#ifndef SFMAMBA_SERVER_REPOSITORY_TIMM_CONFIG_H_
#define SFMAMBA_SERVER_REPOSITORY_TIMM_CONFIG_H_

#include "absl/status/statusor.h"
#include "model/weights/weight_shapes.h"
#include "server/repository/hugging_face_config.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// These functions read timm's description of a model. `shapes` are the shapes
// of the model's tensors.
//
// `stated` is the content of the version's config.textproto. The member
// `architecture` of config.json names the variant. If this member is missing,
// `stated` must name the variant. A name is required, because the shapes do not
// determine all properties. For example, they do not determine MambaOut's
// activation. The number of classes and the number of MambaOut's blocks come
// from the tensors. For the remaining values, see the comment at
// ReadHuggingFaceConfig().
//
// The functions return INVALID_ARGUMENT if the files contradict each other or
// the shapes. The error names the member or the tensor. Wrong tensors of an
// EfficientViM are not detected here but when the model is loaded.
absl::StatusOr<HuggingFaceConfig> ReadMambaOutConfig(
    const HuggingFaceTexts& texts, const weights::MambaOutShapes& shapes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);
absl::StatusOr<HuggingFaceConfig> ReadEfficientVimConfig(
    const HuggingFaceTexts& texts, int num_classes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);

// Reads the description of a VMamba in the format of Transformers, with the
// `model_type` "vmamba". The variant is the row of the variant table with the
// given shapes. If no row has these shapes, the variant is a row with the same
// kind of blocks (the same ssm_ratio). The result then also contains the width
// and the depths of the weights if they differ from this row. Returns the same
// errors as the functions above.
absl::StatusOr<HuggingFaceConfig> ReadVMambaConfig(
    const HuggingFaceTexts& texts, const weights::VMambaShapes& shapes,
    bool with_labels = true);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_TIMM_CONFIG_H_
