#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/detection/nms_cuda.h"
#include "simt/simt.h"

// Four kernels run one after another. They find the largest coordinate of an
// image's boxes, sort the boxes by score, find the pairs that overlap, and
// select the boxes to keep. The compiler must not fuse multiplications with
// additions in this file (no contraction). Shifts and IoUs are therefore
// rounded as in NmsScalar(), and the same boxes are kept.
namespace sfmamba::kernels {
namespace {

constexpr int kLanes = 32;
constexpr unsigned kAll = 0xffffffff;
// The number of boxes in a tile. A 64-bit word has one bit per box of a tile.
constexpr int kTile = 64;
constexpr int kMaxTiles = kNmsCudaMaxBoxes / kTile;

using Box = simt::Vector<float, 4>;  // x1, y1, x2, y2

// The scratch memory. Each array holds the values of all images, one after
// another. Sorted boxes are ordered from the best score down.
struct Scratch {
  Box* boxes;  // [num_boxes] The sorted boxes, shifted.
  // [tiles][tiles * kTile] words. Bit j of word [t][i] is 1 if sorted box i and
  // sorted box t * kTile + j have the same group and an IoU > iou_threshold. If
  // box i is kept, it then removes the other box. A box only removes boxes
  // after it, so word [t][i] is written only if t >= i / kTile.
  uint64_t* overlaps;
  int32_t* order;   // [num_boxes] The sorted boxes' indices.
  int32_t* groups;  // [num_boxes] The sorted boxes' groups.
  float* largest;   // The largest coordinate of boxes with a group >= 0.
  int* present;     // The number of boxes with a group >= 0.
};

__host__ __device__ constexpr int64_t Tiles(int num_boxes) {
  return (num_boxes + kTile - 1) / kTile;
}

__host__ __device__ constexpr int64_t Words(int num_boxes) {
  return Tiles(num_boxes) * Tiles(num_boxes) * kTile;
}

// Returns the addresses of the arrays in `memory`, which holds the arrays of
// all images.
Scratch Divide(void* memory, int num_images, int num_boxes) {
  const int64_t count = int64_t{num_images} * num_boxes;
  Scratch scratch;
  scratch.boxes = static_cast<Box*>(memory);
  scratch.overlaps = reinterpret_cast<uint64_t*>(scratch.boxes + count);
  scratch.order = reinterpret_cast<int32_t*>(scratch.overlaps +
                                             num_images * Words(num_boxes));
  scratch.groups = scratch.order + count;
  scratch.largest = reinterpret_cast<float*>(scratch.groups + count);
  scratch.present = reinterpret_cast<int*>(scratch.largest + num_images);
  return scratch;
}

__device__ Scratch OfImage(const Scratch& all, int64_t image, int num_boxes) {
  return {
      all.boxes + image * num_boxes, all.overlaps + image * Words(num_boxes),
      all.order + image * num_boxes, all.groups + image * num_boxes,
      all.largest + image,           all.present + image};
}

// An image's boxes in their original order.
struct Image {
  __device__ Image(const NmsCudaArgs& args, int64_t image)
      : boxes(args.boxes + 4 * image * args.num_boxes),
        scores(args.scores + image * args.num_boxes),
        groups(args.groups == nullptr ? nullptr
                                      : args.groups + image * args.num_boxes) {}

  __device__ int Group(int i) const {
    return groups == nullptr ? 0 : groups[i];
  }

  const float* boxes;
  const float* scores;
  const int32_t* groups;
};

// Like Min() and Max() in nms_cpu.cc, these return b if either argument is a
// NaN.
__device__ float Min(float a, float b) { return a < b ? a : b; }
__device__ float Max(float a, float b) { return a > b ? a : b; }

// ---- Survey ----

constexpr int kSurveyThreads = 512;

// Counts an image's boxes with a group >= 0 and finds the largest coordinate of
// these boxes. blockIdx.x is the image.
__global__ void SurveyKernel(NmsCudaArgs args, Scratch all) {
  const Scratch scratch = OfImage(all, blockIdx.x, args.num_boxes);
  const Image image(args, blockIdx.x);
  float largest = 0;
  int present = 0;
  for (int i = threadIdx.x; i < args.num_boxes; i += kSurveyThreads) {
    if (image.Group(i) < 0) continue;
    const Box box = simt::Load<4>(image.boxes + int64_t{4} * i);
    for (int corner = 0; corner < 4; ++corner) {
      largest = Max(box[corner], largest);
    }
    ++present;
  }
  __shared__ simt::Shared<int, 2> totals;
  if (threadIdx.x < 2) totals[threadIdx.x] = 0;
  __syncthreads();
  // Non-negative floats have the same order as their bits, read as integers.
  atomicMax(&totals[0], __float_as_int(largest));
  atomicAdd(&totals[1], present);
  __syncthreads();
  if (threadIdx.x == 0) {
    *scratch.largest = __int_as_float(totals[0]);
    *scratch.present = totals[1];
  }
}

// ---- Sort: a box's rank is the number of boxes that come before it ----

// A block ranks kLanes boxes. Each warp of the block compares these boxes with
// a different part of the image's boxes. The time for all comparisons is
// quadratic in the number of boxes. A faster sort would save little, because
// the next kernel also visits all pairs and does more work for each pair.
constexpr int kSortWarps = 8;
constexpr int kSortThreads = kSortWarps * kLanes;
constexpr int kKeys = 1024;  // Sort keys in shared memory at a time.
constexpr uint64_t kAbsent = ~uint64_t{0};

// Returns a key that orders boxes by descending score, then by ascending index.
__device__ uint64_t SortKey(const Image& image, int i) {
  if (image.Group(i) < 0) return kAbsent;
  float score = Max(image.scores[i], -__builtin_inff());
  if (score == 0) score = 0;  // -0 equals 0.
  const int bits = __float_as_int(score);
  const unsigned falling = bits >= 0 ? 0x7fffffffu - bits : bits;
  return uint64_t{falling} << 32 | static_cast<unsigned>(i);
}

__device__ Box Shifted(const Image& image, int i, float largest) {
  const float shift = static_cast<float>(image.Group(i)) * (largest + 1);
  Box box = simt::Load<4>(image.boxes + int64_t{4} * i);
  for (int corner = 0; corner < 4; ++corner) box[corner] += shift;
  return box;
}

// Writes an image's boxes, indices and groups in sorted order. Each blockIdx.x
// handles kLanes boxes. blockIdx.y is the image.
__global__ void SortKernel(NmsCudaArgs args, Scratch all) {
  const Scratch scratch = OfImage(all, blockIdx.y, args.num_boxes);
  const Image image(args, blockIdx.y);
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const int i = blockIdx.x * kLanes + lane;
  const uint64_t key = i < args.num_boxes ? SortKey(image, i) : kAbsent;
  __shared__ simt::Shared<uint64_t, kKeys> keys;
  int before = 0;
  for (int begin = 0; begin < args.num_boxes; begin += kKeys) {
    for (int k = threadIdx.x; k < kKeys; k += kSortThreads) {
      const bool inside = begin + k < args.num_boxes;
      keys[k] = inside ? SortKey(image, begin + k) : kAbsent;
    }
    __syncthreads();
    constexpr int kPart = kKeys / kSortWarps;
    for (int k = warp * kPart; k < (warp + 1) * kPart; k += 2) {
      const simt::Vector<uint64_t, 2> others = keys.Load<2>(k);
      before += others[0] < key;
      before += others[1] < key;
    }
    __syncthreads();
  }
  __shared__ simt::Shared<int, kSortThreads> counts;
  counts[threadIdx.x] = before;
  __syncthreads();
  if (warp != 0 || key == kAbsent) return;
  int place = 0;
  for (int w = 0; w < kSortWarps; ++w) place += counts[w * kLanes + lane];
  scratch.order[place] = i;
  scratch.groups[place] = image.Group(i);
  scratch.boxes[place] = Shifted(image, i, *scratch.largest);
}

// ---- Overlaps ----

__device__ float Area(const Box& box) {
  return (box[2] - box[0]) * (box[3] - box[1]);
}

__device__ float Iou(const Box& a, float a_area, const Box& b, float b_area) {
  const float width = Min(a[2], b[2]) - Max(a[0], b[0]);
  const float height = Min(a[3], b[3]) - Max(a[1], b[1]);
  const float overlap = Max(0.0f, width) * Max(0.0f, height);
  return overlap / (a_area + b_area - overlap);
}

// Writes Scratch::overlaps. blockIdx.x is the tile of the boxes that may be
// removed, and blockIdx.y is the tile of the boxes that may remove them.
// blockIdx.z is the image. Each thread compares one box of tile blockIdx.y with
// all boxes of tile blockIdx.x.
__global__ void OverlapsKernel(NmsCudaArgs args, Scratch all) {
  const Scratch scratch = OfImage(all, blockIdx.z, args.num_boxes);
  const int present = *scratch.present;
  const int begin = blockIdx.x * kTile;
  const int count = min(present - begin, kTile);
  if (blockIdx.y > blockIdx.x || count <= 0) return;
  __shared__ simt::Shared<float, 4 * kTile> boxes;
  __shared__ simt::Shared<float, kTile> areas;
  __shared__ simt::Shared<int, kTile> groups;
  const int thread = threadIdx.x;
  if (thread < count) {
    const Box box = scratch.boxes[begin + thread];
    boxes.Store<4>(4 * thread, box);
    areas[thread] = Area(box);
    groups[thread] = scratch.groups[begin + thread];
  }
  __syncthreads();
  const int i = blockIdx.y * kTile + thread;
  if (i >= present) return;
  const Box box = scratch.boxes[i];
  const float area = Area(box);
  const int group = scratch.groups[i];
  uint64_t word = 0;
  for (int j = 0; j < count; ++j) {
    if (groups[j] == group &&
        Iou(box, area, boxes.Load<4>(4 * j), areas[j]) > args.iou_threshold) {
      word |= uint64_t{1} << j;
    }
  }
  scratch.overlaps[blockIdx.x * Tiles(args.num_boxes) * kTile + i] = word;
}

// ---- Sweep ----

constexpr int kSweepThreads = 512;

__device__ bool Has(uint64_t word, int bit) { return (word >> bit & 1) != 0; }

__device__ int CountBits(uint64_t word) {
  return __popc(static_cast<unsigned>(word)) +
         __popc(static_cast<unsigned>(word >> 32));
}

// Returns one bit for each of a tile's `count` boxes, which is 1 if the box is
// kept. A box is kept if its bit in `struck` is 0 and no earlier kept box of
// the tile removes it.
__device__ uint64_t Keep(uint64_t struck, int count,
                         simt::Shared<uint64_t, kTile>& overlaps) {
  uint64_t kept = 0;
  for (int i = 0; i < count; ++i) {
    if (Has(struck, i)) continue;
    kept |= uint64_t{1} << i;
    struck |= overlaps[i];
  }
  return kept;
}

// Selects the boxes to keep, tile by tile, beginning with the best boxes.
// blockIdx.x is the image.
__global__ void SweepKernel(NmsCudaArgs args, Scratch all, int most) {
  const Scratch scratch = OfImage(all, blockIdx.x, args.num_boxes);
  const int thread = threadIdx.x;
  const int present = *scratch.present;
  int32_t* const out = args.kept + int64_t{blockIdx.x} * most;
  // `kept` has a bit for each kept box of earlier tiles. `overlaps` holds the
  // overlaps between boxes of this tile. `struck` has a word for each warp,
  // with a bit for each box of this tile that the warp found to be removed.
  __shared__ simt::Shared<uint64_t, kMaxTiles> kept;
  __shared__ simt::Shared<uint64_t, kTile> overlaps;
  __shared__ simt::Shared<uint64_t, kSweepThreads / kLanes> struck;
  int num_kept = 0;
  for (int tile = 0; tile * kTile < present && num_kept < most; ++tile) {
    const int begin = tile * kTile;
    const int count = min(present - begin, kTile);
    const uint64_t* const column =
        scratch.overlaps + tile * Tiles(args.num_boxes) * kTile;
    uint64_t word = 0;
    for (int i = thread; i < begin; i += kSweepThreads) {
      if (Has(kept[i / kTile], i % kTile)) word |= column[i];
    }
    for (int offset = kLanes / 2; offset > 0; offset /= 2) {
      word |= __shfl_xor_sync(kAll, word, offset);
    }
    if (thread % kLanes == 0) struck[thread / kLanes] = word;
    if (thread < count) overlaps[thread] = column[begin + thread];
    __syncthreads();
    if (thread == 0) {
      for (int w = 1; w < kSweepThreads / kLanes; ++w) word |= struck[w];
      kept[tile] = Keep(word, count, overlaps);
    }
    __syncthreads();
    const uint64_t chosen = kept[tile];
    if (thread < count && Has(chosen, thread)) {
      const uint64_t before = chosen & ((uint64_t{1} << thread) - 1);
      const int place = num_kept + CountBits(before);
      if (place < most) out[place] = scratch.order[begin + thread];
    }
    num_kept += CountBits(chosen);
  }
  num_kept = min(num_kept, most);
  for (int i = num_kept + thread; i < most; i += kSweepThreads) out[i] = -1;
  if (thread == 0) args.num_kept[blockIdx.x] = num_kept;
}

}  // namespace

size_t NmsCudaScratchBytes(int num_images, int num_boxes) {
  const size_t image = num_boxes * (sizeof(Box) + 2 * sizeof(int32_t)) +
                       Words(num_boxes) * sizeof(uint64_t) + sizeof(float) +
                       sizeof(int);
  return num_images * image;
}

absl::Status NmsCuda(const NmsCudaArgs& args, CudaStream stream) {
  if (args.num_boxes > kNmsCudaMaxBoxes) {
    return absl::InvalidArgumentError(
        absl::StrCat("Nms: expected at most ", kNmsCudaMaxBoxes,
                     " boxes an image, got ", args.num_boxes));
  }
  const Scratch scratch = Divide(args.scratch, args.num_images, args.num_boxes);
  const unsigned images = args.num_images;
  const unsigned tiles = Tiles(args.num_boxes);
  const unsigned parts = (args.num_boxes + kLanes - 1) / kLanes;
  const int most = std::clamp(args.max_kept, 0, args.num_boxes);
  const absl::Status surveyed =
      simt::Launch("Nms, survey", SurveyKernel, dim3(images),
                   dim3(kSurveyThreads), stream, args, scratch);
  if (!surveyed.ok()) return surveyed;
  const absl::Status sorted =
      simt::Launch("Nms, sort", SortKernel, dim3(parts, images),
                   dim3(kSortThreads), stream, args, scratch);
  if (!sorted.ok()) return sorted;
  const absl::Status compared =
      simt::Launch("Nms, overlaps", OverlapsKernel, dim3(tiles, tiles, images),
                   dim3(kTile), stream, args, scratch);
  if (!compared.ok()) return compared;
  return simt::Launch("Nms, sweep", SweepKernel, dim3(images),
                      dim3(kSweepThreads), stream, args, scratch, most);
}

}  // namespace sfmamba::kernels
