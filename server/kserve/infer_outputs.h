#ifndef SFMAMBA_SERVER_KSERVE_INFER_OUTPUTS_H_
#define SFMAMBA_SERVER_KSERVE_INFER_OUTPUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "inference/packed_response.pb.h"
#include "model/config.h"
#include "server/kserve/published_model.h"
#include "server/prediction/answer.h"

namespace sfmamba::kserve {

// An output that a request asks for.
struct WantedOutput {
  ModelTensor tensor;
  // The classes to be named, of `logits` only; 0: the tensor itself.
  int classification = 0;
};

// How many classes are named.
int ClassificationCount(const WantedOutput& output);

// Fills `wanted` with the outputs that the request names, in its order, or with
// all that the model has. INVALID_ARGUMENT, naming the field, if the model has
// no such output, if one is named twice, or if its parameters are wrong;
// UNIMPLEMENTED if they name shared memory.
absl::Status ChooseOutputs(const inference::ModelInferRequest& request,
                           const model::ModelConfig& model,
                           std::vector<WantedOutput>* wanted);

// Writes the answers to a request's images as the rows of its output tensors.
// Thread-compatible, but that several threads may set answers of different
// images at once.
class InferOutputs {
 public:
  InferOutputs() = default;
  // `raw`: whether they go into raw_output_contents.
  InferOutputs(std::vector<WantedOutput> wanted, bool raw)
      : wanted_(std::move(wanted)), raw_(raw) {}

  // To be called before the others.
  void Start(int images) { images_.resize(images); }
  // The answer is of the task that the outputs are of. Returns the bytes that
  // its rows take.
  int64_t SetAnswer(int image, prediction::Answer answer);
  // The bytes of all rows.
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

#endif  // SFMAMBA_SERVER_KSERVE_INFER_OUTPUTS_H_
