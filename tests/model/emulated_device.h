#ifndef SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
#define SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_

#include <cstdint>

#include "model/ops/device_ops.h"

namespace sfmamba::model {

// The operations of unmodified CUDA kernels on the emulator, with tensors in
// the CPU's memory. What cuBLAS and cuDNN would do libtorch does on the CPU.
//
// Who links this also has two GPUs, on which models can be loaded
// (ModelOptions::gpus = {0, 1}): their contexts, buffers and padded batches are
// the real ones. A graph is a stand-in: it calls again what was recorded, on
// the memory of then.
const ops::DeviceOps& EmulatedOps();

// What the emulated GPUs did, and what goes wrong on them. Thread-safe.
namespace emulated {

// The next `count` recordings fail.
void RefuseToRecord(int count);
// Allocations of more than `bytes` at a time fail; 0: none.
void LimitMemory(int64_t bytes);
// From now on GPU `gpu` has failed, or no longer has.
void BreakDevice(bool broken, int gpu = 0);

// Copies of inputs to the devices.
int copies_in();
// The GPU that page-locked memory was last allocated by.
int gpu_of_host_memory();
int graphs_recorded();
int graphs_replayed();
// Those that still live.
int graphs_alive();
int streams_alive();

}  // namespace emulated
}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EMULATED_DEVICE_H_
