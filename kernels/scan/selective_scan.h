#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_H_

#include <cstdint>

#include "kernels/base/bfloat16.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Selective scan over packed sequences. Each channel d has a state h[n], which
// is 0 at the start of each sequence. Each token i gives
//   delta  = log(1 + exp(dt[i,d] + bias[d]))
//   h[n]   = exp(delta * A[n,d]) * h[n] + delta * B[i,n] * u[i,d]
//   y[i,d] = sum over n of C[i,n] * h[n], plus D[d] * u[i,d]
// The arithmetic is fp32 for every T but double. A NaN or an infinity in one
// sequence never reaches another. A sequence's output bits depend neither on
// the other sequences nor on how channels and sequences are divided among
// calls.
// Source: Mamba (arXiv 2312.00752), section 3; SF-Mamba (arXiv 2603.16423),
// 3.3.
template <typename T>
struct SelectiveScanArgs {
  int channels;  // Any number. Multiples of 16 are fastest.
  // At most 16. The fast numbers are 1 (VMamba), 8 (MambaVision) and 16 (Vim).
  int states;
  const T* u;  // [tokens, channels], rows u_stride elements apart
  int64_t u_stride;
  const T* dt;  // [tokens, channels], before bias and softplus
  int64_t dt_stride;
  const T* B;  // [tokens, states], rows bc_stride apart
  const T* C;  // [tokens, states], rows bc_stride apart
  int64_t bc_stride;
  T* y;  // [tokens, channels], written; must not overlap an input
  int64_t y_stride;
  const float* A;  // [states, channels], negative, rows a_stride apart
  int64_t a_stride;
  const float* D;     // [channels]
  const float* bias;  // [channels], twice dt_proj's bias for MambaVision
  PackedSequences sequences;
};

// T is float or BFloat16. Runs on the calling thread. To use several threads,
// callers divide the work with SliceChannels() and PackedSequences::Slice().
// `isa` must be one of SupportedCpuIsas().
template <typename T>
void SelectiveScanCpu(const SelectiveScanArgs<T>& args,
                      CpuIsa isa = ActiveCpuIsa());

// SelectiveScanCpu() calls one of these, depending on the instruction set and
// the number of states.
template <typename T>
void SelectiveScanScalar(const SelectiveScanArgs<T>& args);
template <typename T>
void SelectiveScanAvx2(const SelectiveScanArgs<T>& args);
template <typename T>
void SelectiveScanAvx512(const SelectiveScanArgs<T>& args);

// Computes the scan with all arithmetic in fp64, for tests.
void SelectiveScanReference(const SelectiveScanArgs<double>& args);

// Returns the arguments of the same scan, restricted to channels [begin, end).
template <typename T>
SelectiveScanArgs<T> SliceChannels(SelectiveScanArgs<T> args, int begin,
                                   int end) {
  args.channels = end - begin;
  args.u += begin;
  args.dt += begin;
  args.y += begin;
  args.A += begin;
  args.D += begin;
  args.bias += begin;
  return args;
}

// Returns the arguments of the same scan from each sequence's last token to its
// first. All sequences must have the same length. The strides become negative,
// which only the CPU kernels support.
template <typename T>
SelectiveScanArgs<T> Reversed(SelectiveScanArgs<T> args) {
  // Token i of the reversed scan is token `last` - i of the original scan. This
  // also reverses the order of the sequences, which are independent.
  const int64_t last = args.sequences.begin(0) +
                       args.sequences.end(args.sequences.count - 1) - 1;
  const auto reverse = [last](auto** data, int64_t* stride) {
    *data += last * *stride;
    *stride = -*stride;
  };
  args.C += last * args.bc_stride;
  reverse(&args.u, &args.u_stride);
  reverse(&args.dt, &args.dt_stride);
  reverse(&args.B, &args.bc_stride);
  reverse(&args.y, &args.y_stride);
  return args;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_H_
