#ifndef SFMAMBA_TESTS_MODEL_IMPLEMENTATIONS_H_
#define SFMAMBA_TESTS_MODEL_IMPLEMENTATIONS_H_

#include "model/config.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/implementation.h"

namespace sfmamba::model {

// The implementations on the CPU. They are never destroyed.
const ops::Implementation& Reference();
// In fp32, bf16 or int8, whether the processor supports it or not.
const ops::Implementation& Cpu(Precision precision = Precision::kFloat32);

// For tests that run with both.
inline const ops::Implementation& CpuOrReference(bool cpu) {
  return cpu ? Cpu() : Reference();
}

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_IMPLEMENTATIONS_H_
