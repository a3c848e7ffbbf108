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
          {Precision::kInt8, ops::CpuImplementation(Precision::kInt8)}};
  return implementations.at(precision);
}

}  // namespace sfmamba::model
