#include <cstdint>

#include "kernels/base/logarithms.h"
#include "kernels/segmentation/segmentation_argmax_cuda.h"
#include "simt/simt.h"

// The compiler must not fuse multiplications with additions in this file (no
// contraction). Every logit is therefore rounded as in
// SegmentationArgmaxScalar(), and the labels are the same.
namespace sfmamba::kernels {
namespace {

// A warp classifies a strip of kStrip pixels of a row, one pixel after another.
// The lanes of the warp divide the classes. The lanes therefore read contiguous
// memory for any resize, and the next pixel mostly reads from the cache.
// Neighbouring pixels mostly have the same label. A warp therefore adds the
// length of each run of equal labels to the label's area with one addition.
constexpr int kLanes = 32;
constexpr int kStrip = 16;
constexpr int kWarps = 4;  // Warps in a block.
constexpr int kMaxTaps = 4;
constexpr unsigned kAll = 0xffffffff;
constexpr float kInfinity = __builtin_inff();

// ---- Taps: the same operations as in kernels/pixels/resize_taps.cc ----

struct alignas(8) Tap {
  int index;
  float weight;
};

// The arrays in the scratch memory.
struct Taps {
  int* counts;          // [2], ResizeTaps::count of rows and of columns.
  Tap *rows, *columns;  // [out_height or out_width, kMaxTaps]
};

// The two samples that output i of one resize depends on.
struct Neighbours {
  __device__ Neighbours(int size, int out_size, int i) {
    const float scale = static_cast<float>(size) / static_cast<float>(out_size);
    const float source =
        fmaxf((static_cast<float>(i) + 0.5f) * scale - 0.5f, 0.0f);
    const int low = min(static_cast<int>(source), size - 1);
    const float fraction = fminf(source - static_cast<float>(low), 1.0f);
    taps[0] = {low, 1.0f - fraction};
    taps[1] = {min(low + 1, size - 1), fraction};
  }

  Tap taps[2];
};

// Adds `tap` to a list of `count` different taps. Returns the new count.
__device__ int AddTap(Tap tap, Tap* list, int count) {
  if (tap.weight == 0) return count;
  for (int t = 0; t < count; ++t) {
    if (list[t].index == tap.index) {
      list[t].weight += tap.weight;
      return count;
    }
  }
  list[count] = tap;
  return count + 1;
}

// Fills `list`, [kMaxTaps], with the taps of output i. Returns the number of
// taps that are used. The other taps have weight 0.
__device__ int ComposeTaps(int size, int middle_size, int out_size, int i,
                           Tap* list) {
  int count = 0;
  for (const Tap& outer : Neighbours(middle_size, out_size, i).taps) {
    if (outer.weight == 0) continue;
    for (const Tap& inner : Neighbours(size, middle_size, outer.index).taps) {
      const Tap both = {inner.index, outer.weight * inner.weight};
      count = AddTap(both, list, count);
    }
  }
  for (int t = count; t < kMaxTaps; ++t) list[t] = {list[0].index, 0.0f};
  return count;
}

// Block 0 computes the taps of the rows, and block 1 computes the taps of the
// columns.
__global__ void TapsKernel(int height, int width, int input_height,
                           int input_width, int out_height, int out_width,
                           Taps taps) {
  const bool rows = blockIdx.x == 0;
  const int size = rows ? height : width;
  const int middle_size = rows ? input_height : input_width;
  const int out_size = rows ? out_height : out_width;
  Tap* lists = rows ? taps.rows : taps.columns;
  __shared__ simt::Shared<int, 1> needed;
  if (threadIdx.x == 0) needed[0] = 1;
  __syncthreads();
  int count = 1;
  for (int i = threadIdx.x; i < out_size; i += blockDim.x) {
    count = max(count, ComposeTaps(size, middle_size, out_size, i,
                                   lists + int64_t{i} * kMaxTaps));
  }
  atomicMax(&needed[0], count);
  __syncthreads();
  if (threadIdx.x == 0) taps.counts[blockIdx.x] = needed[0];
}

// ---- Classes ----

// Interpolates the logits of one pixel.
template <typename T>
struct Pixel {
  // Returns the logit of class k. Rows are resized before columns. Taps are
  // summed in the same order as in the scalar loop.
  __device__ float Logit(int k) const {
    float value = 0;
    for (int c = 0; c < column_count; ++c) {
      const T* column = logits + int64_t{columns[c].index} * classes + k;
      float sum = 0;
      for (int r = 0; r < row_count; ++r) {
        const float logit = simt::ToFloat(column[rows[r].index * row_stride]);
        sum += rows[r].weight * logit;
      }
      value += columns[c].weight * sum;
    }
    return value;
  }

  const T* logits;
  int64_t row_stride;
  int classes;
  int row_count, column_count;
  const Tap *rows, *columns;
};

// The best class so far among the classes of a lane. If kSum is true, the
// struct also has the sum of exp(logit - best logit) over these classes.
template <bool kSum>
struct Best {
  __device__ void Meet(float logit, int k) {
    if (logit > value) {
      // The first logit above minus infinity sets the sum to 1, or to NaN if
      // there was a NaN before.
      if (kSum) sum = sum * simt::Exp2((value - logit) * kLog2E) + 1;
      value = logit;
      label = k;
    } else if (kSum && logit != -kInfinity) {
      sum += simt::Exp2((logit - value) * kLog2E);
    }
  }

  // Combines the results of all lanes and stores the combined result in every
  // lane.
  __device__ void Join() {
    const float own = value;
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(kAll, value, offset);
      const int other_label = __shfl_xor_sync(kAll, label, offset);
      if (other > value || (other == value && other_label < label)) {
        value = other;
        label = other_label;
      }
    }
    if (!kSum) return;
    sum *= simt::Exp2((own - value) * kLog2E);
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(kAll, sum, offset);
    }
  }

  float value = -kInfinity;
  int label = 0;
  float sum = 0;
};

// Adds a strip of `count` pixels to `areas`. `label` is the label of the
// strip's pixel number `lane`.
__device__ void CountAreas(int lane, int count, int label, int64_t* areas) {
  const int before = __shfl_up_sync(kAll, label, 1);
  const bool begins = lane < count && (lane == 0 || label != before);
  // Bit i is 1 if a run of equal labels begins at pixel i. Bit `count`, after
  // the last pixel, is also 1, because the last run ends there.
  const unsigned edges = __ballot_sync(kAll, begins) | 1u << count;
  if (!begins) return;
  const int run = __ffs(edges >> (lane + 1));
  static_assert(sizeof(unsigned long long) == sizeof(int64_t));
  atomicAdd(reinterpret_cast<unsigned long long*>(areas + label),
            static_cast<unsigned long long>(run));
}

// blockIdx.x is the row. Each blockIdx.y classifies kWarps strips of the row.
template <typename T, bool kConfidence>
__global__ void ArgmaxKernel(SegmentationArgmaxCudaArgs<T> args, Taps taps) {
  static_assert(kStrip < kLanes, "a strip's end is a bit too");
  const int lane = threadIdx.x;
  const int y = args.row_begin + blockIdx.x;
  const int begin = (blockIdx.y * kWarps + threadIdx.y) * kStrip;
  const int count = min(args.out_width - begin, kStrip);
  if (count <= 0) return;
  Pixel<T> pixel = {args.logits,    int64_t{args.width} * args.classes,
                    args.classes,   taps.counts[0],
                    taps.counts[1], taps.rows + int64_t{y} * kMaxTaps,
                    nullptr};
  int label = 0;  // The label of pixel `lane` in the strip.
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    pixel.columns = taps.columns + int64_t{begin + i} * kMaxTaps;
    Best<kConfidence> best;
    for (int k = lane; k < args.classes; k += kLanes) {
      best.Meet(pixel.Logit(k), k);
    }
    best.Join();
    if (lane == i) {
      label = best.label;
      sum = best.sum;
    }
  }
  if (args.areas != nullptr) CountAreas(lane, count, label, args.areas);
  if (lane >= count) return;
  const int64_t place = int64_t{y} * args.out_width + begin + lane;
  args.labels[place] = static_cast<uint16_t>(label);
  if (kConfidence) {
    args.confidence[place] =
        sum >= 1 ? static_cast<uint8_t>(255.0f / sum + 0.5f) : 0;
  }
}

// The size of Taps::counts in the scratch memory, with padding. The taps
// follow.
constexpr size_t kCountsBytes = 16;
constexpr int kTapsThreads = 256;

}  // namespace

size_t SegmentationArgmaxCudaScratchBytes(int out_height, int out_width) {
  return kCountsBytes +
         (static_cast<size_t>(out_height) + out_width) * kMaxTaps * sizeof(Tap);
}

template <typename T>
absl::Status SegmentationArgmaxCuda(const SegmentationArgmaxCudaArgs<T>& args,
                                    CudaStream stream) {
  if (args.row_begin >= args.row_end || args.out_width == 0) {
    return absl::OkStatus();
  }
  char* const scratch = static_cast<char*>(args.scratch);
  Tap* const rows = reinterpret_cast<Tap*>(scratch + kCountsBytes);
  const Taps taps = {reinterpret_cast<int*>(scratch), rows,
                     rows + int64_t{args.out_height} * kMaxTaps};
  const absl::Status status = simt::Launch(
      "SegmentationArgmax, taps", TapsKernel, dim3(2), dim3(kTapsThreads),
      stream, args.height, args.width, args.input_height, args.input_width,
      args.out_height, args.out_width, taps);
  if (!status.ok()) return status;
  const unsigned rows_written = args.row_end - args.row_begin;
  constexpr int kPixels = kWarps * kStrip;
  const dim3 blocks(rows_written, (args.out_width + kPixels - 1) / kPixels);
  return simt::Launch("SegmentationArgmax",
                      args.confidence != nullptr ? ArgmaxKernel<T, true>
                                                 : ArgmaxKernel<T, false>,
                      blocks, dim3(kLanes, kWarps), stream, args, taps);
}

template absl::Status SegmentationArgmaxCuda<float>(
    const SegmentationArgmaxCudaArgs<float>&, CudaStream);
template absl::Status SegmentationArgmaxCuda<BFloat16>(
    const SegmentationArgmaxCudaArgs<BFloat16>&, CudaStream);
template absl::Status SegmentationArgmaxCuda<Float16>(
    const SegmentationArgmaxCudaArgs<Float16>&, CudaStream);

}  // namespace sfmamba::kernels
