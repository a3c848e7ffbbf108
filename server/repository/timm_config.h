#ifndef SFMAMBA_SERVER_REPOSITORY_TIMM_CONFIG_H_
#define SFMAMBA_SERVER_REPOSITORY_TIMM_CONFIG_H_

#include "absl/status/statusor.h"
#include "model/weights/weight_shapes.h"
#include "server/repository/hugging_face_config.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// These read timm's description of a model whose tensors have these shapes.
//
// `architecture`, or else the variant of `stated`, names the variant. The
// shapes do not show everything, such as MambaOut's activation, so one of the
// two must be there. The number of classes and of MambaOut's blocks are those
// of the tensors. The rest is read as ReadHuggingFaceConfig() reads it.
//
// INVALID_ARGUMENT, naming the member or the tensor, if the files contradict
// each other or the shapes. What an EfficientViM's tensors contradict, loading
// says.
absl::StatusOr<HuggingFaceConfig> ReadMambaOutConfig(
    const HuggingFaceTexts& texts, const weights::MambaOutShapes& shapes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);
absl::StatusOr<HuggingFaceConfig> ReadEfficientVimConfig(
    const HuggingFaceTexts& texts, int num_classes,
    const v1::ModelConfig& stated = {}, bool with_labels = true);

// Reads VMamba's description for Transformers, whose `model_type` is "vmamba".
// The variant is the row of these shapes. Errors as above.
absl::StatusOr<HuggingFaceConfig> ReadVMambaConfig(
    const HuggingFaceTexts& texts, const weights::VMambaShapes& shapes,
    bool with_labels = true);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_TIMM_CONFIG_H_
