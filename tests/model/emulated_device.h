#ifndef SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
#define SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_

#include <cstdint>

#include "model/ops/device_ops.h"

namespace sfmamba::model {

// The operations of unmodified CUDA kernels on the emulator, with tensors in
// the CPU's memory. libtorch replaces cuBLAS and cuDNN on the CPU.
//
// A program that links this has two GPUs, on which models can be loaded
// (ModelOptions::gpus = {0, 1}). Contexts, buffers and padded batches are the
// real ones. A graph is a stand-in. It repeats the recorded calls on the memory
// of the recording.
const ops::DeviceOps& EmulatedOps();

// Records the emulated GPUs' actions and controls their failures. Thread-safe.
namespace emulated {

// Makes the next `count` recordings fail.
void RefuseToRecord(int count);
// Makes single allocations of more than `bytes` fail. 0 removes the limit.
void LimitMemory(int64_t bytes);
// Makes GPU `gpu` fail from now on, or repairs it.
void BreakDevice(bool broken, int gpu = 0);

// The number of copies of inputs to the devices.
int copies_in();
// The GPU that last allocated pinned memory.
int gpu_of_host_memory();
int graphs_recorded();
int graphs_replayed();
// The number of graphs and streams that still exist.
int graphs_alive();
int streams_alive();

}  // namespace emulated
}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
