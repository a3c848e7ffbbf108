#ifndef SFMAMBA_TESTS_TESTING_FIXTURE_H_
#define SFMAMBA_TESTS_TESTING_FIXTURE_H_

#include <map>
#include <memory>
#include <string>

#include "ATen/core/Tensor.h"
#include "model/weights/safetensors.h"

namespace sfmamba {

// The tensors of testdata/<folder>/<name>.safetensors, as fp32, int64 or uint8.
class Fixture {
 public:
  // Aborts if the file does not exist.
  explicit Fixture(const std::string& name,
                   const std::string& folder = "heads");

  // Returns a copy of a tensor. Aborts if it does not exist.
  at::Tensor operator[](const std::string& key) const;

  // Returns views of the tensors whose keys begin with `prefix`, without the
  // prefix. The views are valid while this object lives.
  std::map<std::string, weights::TensorView> Weights(
      const std::string& prefix) const;

 private:
  std::unique_ptr<weights::SafetensorsFile> file_;
};

// Returns max |a - b| / (1 + max |b|) for tensors of the same shape. Tests
// expect at most 1e-4.
double RelativeError(const at::Tensor& a, const at::Tensor& b);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_FIXTURE_H_
