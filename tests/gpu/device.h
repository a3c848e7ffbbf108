#ifndef SFMAMBA_TESTS_GPU_DEVICE_H_
#define SFMAMBA_TESTS_GPU_DEVICE_H_

namespace sfmamba {

// What measuring whole models asks of the device besides. There are two
// implementations: device_cuda.cc, and device_emulated.cc for the rehearsal.

// MiB of the device's memory in use, by whomever.
double DeviceMib();

// libtorch gives back what it keeps for later.
void ReleaseCachedMemory();

// A profiler that was told to wait records what runs between these.
void StartProfiler();
void StopProfiler();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_DEVICE_H_
