#ifndef SFMAMBA_TESTS_EMULATOR_SIMT_SIMT_H_
#define SFMAMBA_TESTS_EMULATOR_SIMT_SIMT_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/cuda/cuda_stream.h"
#include "tests/emulator/grid.h"
#include "tests/emulator/shared.h"

// The host's version of kernels/cuda/nvcc/simt/simt.h, which lists what kernels
// may use. With this header, g++ compiles unmodified kernels, and grid.h runs
// them. It does not check registers, __launch_bounds__, bank conflicts, races
// in global memory, or reads beyond an array in global memory.

// Defines keywords of CUDA C++ as macros, so that a host compiler accepts them.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define threadIdx (::sfmamba::simt::Running().index)
#define blockIdx (::sfmamba::simt::Running().block)
#define blockDim (::sfmamba::simt::Running().block_size)
#define gridDim (::sfmamba::simt::Running().grid_size)

// ---- Barriers and exchanges within a warp ----

inline void __syncthreads(int line = __builtin_LINE()) {
  sfmamba::simt::SyncThreads(line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       int line = __builtin_LINE()) {
  sfmamba::simt::SyncWarp(mask, line);
}

namespace sfmamba::simt {

template <typename T>
T ExchangeValue(const char* operation, unsigned mask, T value, int source,
                int line) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) >= 4, "as CUDA has it");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Exchange(operation, mask, bits, source, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// Returns the first lane of the running lane's group of `width` lanes.
inline int FirstOfGroup(int width) { return Running().lane & ~(width - 1); }

}  // namespace sfmamba::simt

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              int line = __builtin_LINE()) {
  const int first = sfmamba::simt::FirstOfGroup(width);
  return sfmamba::simt::ExchangeValue("__shfl_sync", mask, value,
                                      first + (source & (width - 1)), line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 int line = __builtin_LINE()) {
  const int lane = sfmamba::simt::Running().lane;
  const int source = lane - static_cast<int>(delta);
  return sfmamba::simt::ExchangeValue(
      "__shfl_up_sync", mask, value,
      source >= sfmamba::simt::FirstOfGroup(width) ? source : lane, line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   int line = __builtin_LINE()) {
  const int lane = sfmamba::simt::Running().lane;
  const int source = lane + static_cast<int>(delta);
  return sfmamba::simt::ExchangeValue(
      "__shfl_down_sync", mask, value,
      source < sfmamba::simt::FirstOfGroup(width) + width ? source : lane,
      line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32,
                  int line = __builtin_LINE()) {
  const int lane = sfmamba::simt::Running().lane;
  const int source = lane ^ flip;
  return sfmamba::simt::ExchangeValue(
      "__shfl_xor_sync", mask, value,
      source < sfmamba::simt::FirstOfGroup(width) + width ? source : lane,
      line);
}

inline unsigned __ballot_sync(unsigned mask, int on,
                              int line = __builtin_LINE()) {
  return sfmamba::simt::Ballot("__ballot_sync", mask, on != 0, line);
}
inline int __any_sync(unsigned mask, int on, int line = __builtin_LINE()) {
  return sfmamba::simt::Ballot("__any_sync", mask, on != 0, line) != 0;
}
inline int __all_sync(unsigned mask, int on, int line = __builtin_LINE()) {
  return sfmamba::simt::Ballot("__all_sync", mask, on == 0, line) == 0;
}

// ---- Atomic operations, which need no lock because one thread runs at a time
// ----

namespace sfmamba::simt {

template <typename T, typename Change>
T ChangeAtomically(T* address, Change change) {
  Yield();
  const T old = *address;
  *address = change(old);
  return old;
}
template <typename T, typename Change>
T ChangeAtomically(SharedPointer<T> pointer, Change change) {
  Yield();
  pointer.shadow->Atomic(pointer.i);
  const T old = *pointer.value;
  *pointer.value = change(old);
  return old;
}

// The type T for a T* or a SharedPointer<T>.
template <typename Pointer>
struct Pointee;
template <typename T>
struct Pointee<T*> {
  using type = T;
};
template <typename T>
struct Pointee<SharedPointer<T>> {
  using type = T;
};

}  // namespace sfmamba::simt

template <typename Pointer,
          typename T = typename sfmamba::simt::Pointee<Pointer>::type>
T atomicAdd(Pointer address, std::common_type_t<T> value) {
  return sfmamba::simt::ChangeAtomically(address,
                                         [&](T old) { return old + value; });
}
template <typename Pointer,
          typename T = typename sfmamba::simt::Pointee<Pointer>::type>
T atomicMax(Pointer address, std::common_type_t<T> value) {
  return sfmamba::simt::ChangeAtomically(
      address, [&](T old) { return old < value ? value : old; });
}
template <typename Pointer,
          typename T = typename sfmamba::simt::Pointee<Pointer>::type>
T atomicMin(Pointer address, std::common_type_t<T> value) {
  return sfmamba::simt::ChangeAtomically(
      address, [&](T old) { return value < old ? value : old; });
}
template <typename Pointer,
          typename T = typename sfmamba::simt::Pointee<Pointer>::type>
T atomicOr(Pointer address, std::common_type_t<T> value) {
  return sfmamba::simt::ChangeAtomically(address,
                                         [&](T old) { return old | value; });
}
template <typename Pointer,
          typename T = typename sfmamba::simt::Pointee<Pointer>::type>
T atomicCAS(Pointer address, std::common_type_t<T> expected,
            std::common_type_t<T> value) {
  return sfmamba::simt::ChangeAtomically(
      address, [&](T old) { return old == expected ? value : old; });
}

// ---- Arithmetic that CUDA C++ provides without a header ----

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }

inline int __float_as_int(float x) {
  int bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __int_as_float(int bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

inline float rsqrtf(float x) {
  return static_cast<float>(1 / std::sqrt(double{x}));
}

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long min(long a, long b) { return b < a ? b : a; }
inline long max(long a, long b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }

namespace sfmamba::simt {

// ---- Arithmetic of the hardware's approximate instructions ----

// Replaces a subnormal value by 0, like ".ftz" does for operands and results.
inline float FlushSubnormal(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min()
             ? std::copysign(0.0f, x)
             : x;
}

inline float Exp2(float x) {
  return FlushSubnormal(
      static_cast<float>(std::exp2(double{FlushSubnormal(x)})));
}
inline float Log2(float x) {
  return static_cast<float>(std::log2(double{FlushSubnormal(x)}));
}
inline float Reciprocal(float x) {
  return FlushSubnormal(static_cast<float>(1 / double{FlushSubnormal(x)}));
}

// ---- Arithmetic that is one instruction each ----

inline float Min(float x, float y) {
  if (std::isnan(x) || std::isnan(y)) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (x == y) return std::signbit(x) ? x : y;  // -0 is less than 0.
  return x < y ? x : y;
}
inline float Max(float x, float y) { return -Min(-x, -y); }

// ---- Element types ----

inline float ToFloat(float x) { return x; }
inline float ToFloat(kernels::BFloat16 x) { return static_cast<float>(x); }
inline float ToFloat(kernels::Float16 x) { return static_cast<float>(x); }

template <typename T>
T FromFloat(float x) {
  return T(x);
}

// ---- Memory ----

inline void CheckAddress(const void* address, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  Fail(absl::StrCat("moves ", bytes, " bytes at once at an address that is ",
                    reinterpret_cast<uintptr_t>(address) % bytes,
                    " beyond a multiple of ", bytes));
}

template <int N, typename T>
Vector<T, N> Load(const T* from) {
  CheckAddress(from, sizeof(T) * N);
  Vector<T, N> vector;
  std::memcpy(vector.values, from, sizeof(T) * N);
  return vector;
}
template <int N, typename T>
void Store(T* to, const Vector<T, N>& vector) {
  CheckAddress(to, sizeof(T) * N);
  std::memcpy(to, vector.values, sizeof(T) * N);
}

inline int64_t Opaque(int64_t offset) { return offset; }

// ---- Launching ----

template <typename... Parameters, typename... Args>
absl::Status Launch(const char* name, void (*kernel)(Parameters...),
                    dim3 blocks, dim3 threads, kernels::CudaStream /*stream*/,
                    Args&&... args) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return absl::OkStatus();
  const std::tuple<Parameters...> values(std::forward<Args>(args)...);
  return RunGrid(name, blocks, threads, [&] { std::apply(kernel, values); });
}

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_SIMT_SIMT_H_
