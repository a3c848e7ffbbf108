#ifndef SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
#define SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_

#include <cstdint>

#include "model/ops/device_ops.h"

namespace sfmamba::model {

// Returns the operations of unmodified CUDA kernels on the emulator. Tensors
// are in the CPU's memory. libtorch on the CPU replaces cuBLAS and cuDNN.
//
// A program that links this file has two GPUs on which models can be loaded
// (ModelOptions::gpus = {0, 1}). Contexts, buffers and padded batches are real.
// Only graphs are simulated. A graph repeats the recorded calls on the memory
// that was used in the recording.
const ops::DeviceOps& EmulatedOps();

// Records the emulated GPUs' actions and controls their failures. Thread-safe.
namespace emulated {

// Makes the next `count` recordings fail.
void RefuseToRecord(int count);
// Makes each allocation of more than `bytes` fail. 0 removes the limit.
void LimitMemory(int64_t bytes);
// Makes GPU `gpu` fail from now on, or repairs it.
void BreakDevice(bool broken, int gpu = 0);

// Returns the number of copies of inputs to the devices.
int copies_in();
// Returns the GPU that last allocated pinned memory.
int gpu_of_host_memory();
int graphs_recorded();
int graphs_replayed();
// Return the number of graphs and streams that still exist.
int graphs_alive();
int streams_alive();

}  // namespace emulated
}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
