#include "tests/model/implementations.h"

#include <map>

#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::model {

const ops::Implementation& Reference() {
  static const auto& reference = *new ops::ReferenceImplementation;
  return reference;
}

const ops::Implementation& Cpu(Precision precision) {
  static const auto& implementations =
      *new std::map<Precision, ops::CpuImplementation>{
          {Precision::kFloat32, ops::CpuImplementation(Precision::kFloat32)},
          {Precision::kBFloat16, ops::CpuImplementation(Precision::kBFloat16)},
          {Precision::kFloat16, ops::CpuImplementation(Precision::kFloat16)}};
  return implementations.at(precision);
}

const ops::Implementation& CpuBf16(CpuProducts products) {
  using Implementations = std::map<CpuProducts, ops::CpuImplementation>;
  static const auto& implementations = *[] {
    auto* all = new Implementations;
    for (CpuProducts one :
         {CpuProducts::kBFloat16, CpuProducts::kOneDnn, CpuProducts::kTorch}) {
      all->try_emplace(one, Precision::kBFloat16, one);
    }
    return all;
  }();
  return implementations.at(products);
}

}  // namespace sfmamba::model
