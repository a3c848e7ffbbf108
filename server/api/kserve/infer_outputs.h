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

// An output that a request wants.
struct WantedOutput {
  ModelTensor tensor;
  // How many classes are named instead of the tensor. 0: the tensor itself.
  // Only `logits` may have more than 0.
  int classification = 0;
};

// Returns how many classes are named. A model may have fewer than are wanted.
int ClassificationCount(const WantedOutput& output);

// Fills `wanted` with the outputs that the request names, in its order. A
// request that names none wants all outputs of the model. INVALID_ARGUMENT,
// naming the field, if the model has no such output, if an output is named
// twice, or if its parameters are wrong. UNIMPLEMENTED if the parameters name
// shared memory.
absl::Status ChooseOutputs(const inference::ModelInferRequest& request,
                           const model::ModelConfig& model,
                           std::vector<WantedOutput>* wanted);

// Writes the answers to a request's images as the rows of its output tensors.
// Thread-compatible, but several threads may set the answers of different
// images at the same time.
class InferOutputs {
 public:
  InferOutputs() = default;
  // `raw`: whether the tensors go into raw_output_contents.
  InferOutputs(std::vector<WantedOutput> wanted, bool raw)
      : wanted_(std::move(wanted)), raw_(raw) {}

  // Called first.
  void Start(int images) { images_.resize(images); }
  // The answer and the outputs are of the same task. Returns the bytes that the
  // answer's rows take.
  int64_t SetAnswer(int image, prediction::Answer answer);
  // Returns the bytes of all rows.
  int64_t Bytes() const;
  // Moves the tensors into the response. All images have their answers.
  void MoveTo(inference::packed::ModelInferResponse* response);

 private:
  struct Image {
    std::vector<std::string> rows;  // One for each output, in its sent form.
    int height = 0, width = 0;      // A class map's sides.
  };

  // Returns the shape of the i-th output.
  std::vector<int64_t> ShapeOf(size_t i) const;

  std::vector<WantedOutput> wanted_;
  bool raw_ = true;
  std::vector<Image> images_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_OUTPUTS_H_
