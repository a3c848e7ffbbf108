#ifndef SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
#define SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_

#include <cstdint>

#include "model/ops/device_ops.h"

namespace sfmamba::model {

// Returns operations that run the unmodified CUDA kernels on the CPU, in the
// emulator of tests/emulator. Tensors are in the CPU's memory. libtorch's CPU
// operators replace cuBLAS and cuDNN.
//
// A program that links this file has two emulated GPUs on which models can be
// loaded (ModelOptions::gpus = {0, 1}). The engine's contexts, buffers and
// padding of batches are the code of the server. Streams, copies and CUDA
// graphs are simulated. A simulated graph repeats the recorded calls. Like a
// real graph, it reads and writes the memory that the recording used.
const ops::DeviceOps& EmulatedOps();

// Functions that control failures of the emulated GPUs and return what these
// GPUs have done. Thread-safe.
namespace emulated {

// Makes the next `count` recordings fail.
void RefuseToRecord(int count);
// Makes each allocation of more than `bytes` fail. 0 removes the limit.
void LimitMemory(int64_t bytes);
// If `broken`, makes GPU `gpu` fail from now on. Otherwise repairs it.
void BreakDevice(bool broken, int gpu = 0);

// Returns the number of copies of inputs to the emulated GPUs so far.
int copies_in();
// Returns the GPU that last allocated pinned memory.
int gpu_of_host_memory();
// Return how many graphs have been recorded and replayed so far.
int graphs_recorded();
int graphs_replayed();
// Return the number of graphs and streams that still exist.
int graphs_alive();
int streams_alive();

}  // namespace emulated
}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
