#ifndef SFMAMBA_TESTS_MODEL_IMPLEMENTATIONS_H_
#define SFMAMBA_TESTS_MODEL_IMPLEMENTATIONS_H_

#include "model/config.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/implementation.h"

namespace sfmamba::model {

// The following functions return implementations on the CPU, which are never
// destroyed.
const ops::Implementation& Reference();
// Computes in fp32, bf16 or int8, even if the CPU has no instructions for this
// type.
const ops::Implementation& Cpu(Precision precision = Precision::kFloat32);

// Returns one of the two implementations, for tests that run with both.
inline const ops::Implementation& CpuOrReference(bool cpu) {
  return cpu ? Cpu() : Reference();
}

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_IMPLEMENTATIONS_H_
