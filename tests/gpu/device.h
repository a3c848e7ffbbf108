#ifndef SFMAMBA_TESTS_GPU_DEVICE_H_
#define SFMAMBA_TESTS_GPU_DEVICE_H_

namespace sfmamba {

// Device functions for measuring whole models. There are two implementations:
// device_cuda.cc, and device_emulated.cc for rehearsals.

// Returns the MiB of the device's memory in use by all processes.
double DeviceMib();

// Frees the device memory that libtorch caches.
void ReleaseCachedMemory();

// Start and stop the recording of a profiler that waits for these calls.
void StartProfiler();
void StopProfiler();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_DEVICE_H_
