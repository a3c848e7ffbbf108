#ifndef SFMAMBA_TESTS_TESTING_FIXTURE_H_
#define SFMAMBA_TESTS_TESTING_FIXTURE_H_

#include <map>
#include <memory>
#include <string>

#include "ATen/core/Tensor.h"
#include "model/weights/safetensors.h"

namespace sfmamba {

// The tensors of testdata/heads/<name>.safetensors: fp32, int64 or uint8.
class Fixture {
 public:
  // Dies if there is no such file.
  explicit Fixture(const std::string& name);

  // A copy; dies if there is no such tensor.
  at::Tensor operator[](const std::string& key) const;

  // Those whose keys begin with `prefix`, without it; views into this.
  std::map<std::string, weights::TensorView> Weights(
      const std::string& prefix) const;

 private:
  std::unique_ptr<weights::SafetensorsFile> file_;
};

// max |a - b| / (1 + max |b|), of tensors of one shape: at most 1e-4 where they
// are to agree.
double RelativeError(const at::Tensor& a, const at::Tensor& b);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_FIXTURE_H_
