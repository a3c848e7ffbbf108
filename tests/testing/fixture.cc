#include "tests/testing/fixture.h"

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "ATen/TensorOperators.h"
#include "ATen/ops/abs.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/item.h"
#include "ATen/ops/max.h"
#include "absl/strings/match.h"

namespace sfmamba {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << "\n";
  std::abort();
}

at::ScalarType TypeOf(weights::DType dtype, const std::string& key) {
  switch (dtype) {
    case weights::DType::kF32:
      return at::kFloat;
    case weights::DType::kI64:
      return at::kLong;
    case weights::DType::kU8:
      return at::kByte;
    default:
      Die("fixture tensor " + key + " is of type " +
          std::string(weights::DTypeName(dtype)));
  }
}

}  // namespace

Fixture::Fixture(const std::string& name, const std::string& folder) {
  auto file = weights::SafetensorsFile::Open(
      "tests/testing/testdata/" + folder + "/" + name + ".safetensors");
  if (!file.ok()) Die("fixture " + name + ": " + file.status().ToString());
  file_ = *std::move(file);
}

at::Tensor Fixture::operator[](const std::string& key) const {
  const auto it = file_->tensors().find(key);
  if (it == file_->tensors().end()) Die("no fixture tensor " + key);
  const weights::TensorView& view = it->second;
  at::Tensor tensor = at::empty(view.shape, TypeOf(view.dtype, key));
  std::memcpy(tensor.data_ptr(), view.data.data(), view.data.size());
  return tensor;
}

std::map<std::string, weights::TensorView> Fixture::Weights(
    const std::string& prefix) const {
  std::map<std::string, weights::TensorView> weights;
  for (const auto& [key, view] : file_->tensors()) {
    if (absl::StartsWith(key, prefix)) {
      weights.emplace(key.substr(prefix.size()), view);
    }
  }
  return weights;
}

double RelativeError(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) Die("the tensors have different shapes");
  if (a.numel() == 0) return 0;
  const at::Tensor reference = b.to(at::kDouble);
  const at::Tensor difference = (a.to(at::kDouble) - reference).abs().max();
  return difference.item().toDouble() /
         (1 + reference.abs().max().item().toDouble());
}

}  // namespace sfmamba
