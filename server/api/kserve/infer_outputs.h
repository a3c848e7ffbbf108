#ifndef SFMAMBA_SERVER_API_KSERVE_INFER_OUTPUTS_H_
#define SFMAMBA_SERVER_API_KSERVE_INFER_OUTPUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "inference/packed_response.pb.h"
#include "model/config.h"
#include "server/api/kserve/published_model.h"
#include "server/prediction/answer.h"

namespace sfmamba::kserve {

// A requested output.
struct WantedOutput {
  ModelTensor tensor;
  // The number of top classes to return instead of the tensor. If 0, the tensor
  // itself is returned. Always 0 except for the output `logits`.
  int classification = 0;
};

// Returns the number of top classes in an output. This number is
// WantedOutput::classification, but at most the number of the model's classes.
int ClassificationCount(const WantedOutput& output);

// Fills `wanted` with the requested outputs in request order. If the request
// names no output, selects all outputs of the model. Returns an error in these
// cases:
// - INVALID_ARGUMENT with the field: an output does not exist, is named twice
//   or has wrong parameters.
// - UNIMPLEMENTED: the parameters name shared memory.
absl::Status ChooseOutputs(const inference::ModelInferRequest& request,
                           const model::ModelConfig& model,
                           std::vector<WantedOutput>* wanted);

// Collects the results of all images as rows of the output tensors. Each image
// has one row in each tensor. Thread-compatible. Results of different images
// may be set concurrently.
class InferOutputs {
 public:
  InferOutputs() = default;
  // If `raw` is true, MoveTo() writes the tensors into raw_output_contents.
  // Otherwise MoveTo() writes them into the typed contents of each output.
  InferOutputs(std::vector<WantedOutput> wanted, bool raw)
      : wanted_(std::move(wanted)), raw_(raw) {}

  // Prepares rows for `images` images. Must be called before the methods below.
  void Start(int images) { images_.resize(images); }
  // Stores the result of one image. `answer` must come from the model whose
  // outputs were passed to the constructor. Returns the size of the image's
  // rows in bytes.
  int64_t SetAnswer(int image, prediction::Answer answer);
  // Returns the total size of all rows in bytes.
  int64_t Bytes() const;
  // Moves the tensors into the response. SetAnswer() must have been called for
  // every image.
  void MoveTo(inference::packed::ModelInferResponse* response);

 private:
  struct Image {
    std::vector<std::string> rows;  // One encoded row for each output.
    // The size of the image's class map in pixels.
    int height = 0, width = 0;
  };

  // Returns the shape of output `i`.
  std::vector<int64_t> ShapeOf(size_t i) const;

  std::vector<WantedOutput> wanted_;
  bool raw_ = true;
  std::vector<Image> images_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_OUTPUTS_H_
