#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/scan/cross_scan_cuda.h"
#include "kernels/scan/scan_math.h"
#include "simt/simt.h"

// Each thread scans one channel in one direction, so neighbouring threads read
// neighbouring values of a pixel. Maps are not copied into the order of a
// direction. Only the addresses are computed in this order. All threads of a
// block use the same B and C of a pixel and read them by one access.
//
// A walk is the scan of one map in one direction. If walks are cut into pieces,
// three kernels run, as in selective_scan_chunk_cuda.cu. Otherwise, only
// OutputKernel runs.
namespace sfmamba::kernels {
namespace {

constexpr int kDirections = 4;
constexpr int kWarp = 32;
constexpr int kThreads = 128;  // The maximum number in a block.

// The number of pixels in a unit. A unit is loaded while the previous unit is
// scanned. The length of a piece is a multiple of kUnit, so only the last piece
// of a walk can end within a unit.
constexpr int kUnit = 8;

template <typename T>
__device__ __forceinline__ int Area(const CrossScanArgs<T>& args) {
  return args.height * args.width;
}

// Consecutive pixels of a walk. `from` is a position in the direction's order.
struct Piece {
  int from, count;
};

// Returns piece number `piece` of a walk over `area` pixels. The piece is empty
// if it would begin beyond the end of the walk.
__device__ __forceinline__ Piece PieceOf(int area, int piece, int pieces) {
  const int64_t units = (area + kUnit - 1) / kUnit;
  const int64_t size = (units + pieces - 1) / pieces * kUnit;
  const int64_t from = min(int64_t{area}, piece * size);
  return {static_cast<int>(from),
          static_cast<int>(min(int64_t{area}, from + size) - from)};
}

// Returns the indices of a map's pixels one by one, in a direction's order.
class Pixels {
 public:
  // The first call of Next() returns pixel number `from` of the direction.
  __device__ __forceinline__ Pixels(int height, int width, int direction,
                                    int from)
      : height_(height), left_(height - from % height) {
    const bool columns = direction % 2 != 0;
    const int area = height * width;
    pixel_ = columns ? from % height * width + from / height : from;
    step_ = columns ? width : 1;
    turn_ = columns ? 1 + width - area : 1;
    // Pixel p of a backward direction is pixel area - 1 - p of the forward one.
    if (direction >= 2) {
      pixel_ = area - 1 - pixel_;
      step_ = -step_;
      turn_ = -turn_;
    }
  }

  __device__ __forceinline__ int Next() {
    const int pixel = pixel_;
    const bool turns = --left_ == 0;
    pixel_ += turns ? turn_ : step_;
    if (turns) left_ = height_;
    return pixel;
  }

 private:
  const int height_;
  int pixel_;
  int left_;  // The number of pixels left in the current column.
  // The steps of pixel_ within a column and at the end of a column.
  int step_, turn_;
};

// Scans a channel over one piece. If kOutput is true, writes y. If kOutput is
// false, only computes the last state and the sum of s (see scan_math.h).
template <typename T, bool kOutput>
class PieceScan {
 public:
  __device__ __forceinline__ PieceScan(const CrossScanArgs<T>& args, int image,
                                       int direction, int d, Piece piece)
      : args_(args),
        count_(piece.count),
        pixels_(args.height, args.width, direction, piece.from) {
    const int of_direction = direction * args.channels + d;
    A_ = args.A[of_direction];
    D_ = args.D[of_direction];
    bias_ = args.bias[of_direction] * kLog2E;
    const int64_t first = int64_t{image} * Area(args);
    const int64_t in_dt =
        (int64_t{direction} * args.images * Area(args) + first) *
            args.channels +
        d;
    u_ = args.u + first * args.channels + d;
    dt_ = args.dt + in_dt;
    y_ = args.y + in_dt;
    const int64_t in_bc =
        first * args.bc_stride + direction * args.bc_direction_stride;
    B_ = args.B + in_bc;
    C_ = args.C + in_bc;
  }

  __device__ __forceinline__ void Walk() {
    Unit unit, next;
    Fetch(count_, next);
#pragma unroll 1
    for (int rest = count_; rest > 0; rest -= kUnit) {
      unit = next;
      Fetch(rest - kUnit, next);
      Scan(unit, rest);
    }
  }

  float h = 0;
  float s_sum = 0;

 private:
  struct Unit {
    T u[kUnit], dt[kUnit], B[kUnit], C[kUnit];
    int at[kUnit];  // Offsets of the pixels in u_, dt_ and y_.
  };

  // Loads the next unit. `rest` is the number of pixels of the piece that are
  // not yet loaded. Values beyond the end of the piece are 0.
  __device__ __forceinline__ void Fetch(int rest, Unit& unit) {
    if (rest >= kUnit) {
#pragma unroll
      for (int q = 0; q < kUnit; ++q) FetchPixel(q, unit);
    } else {
#pragma unroll
      for (int q = 0; q < kUnit; ++q) {
        unit.u[q] = unit.dt[q] = unit.B[q] = unit.C[q] = T{};
        if (q < rest) FetchPixel(q, unit);
      }
    }
  }

  __device__ __forceinline__ void FetchPixel(int q, Unit& unit) {
    const int pixel = pixels_.Next();
    const int at = pixel * args_.channels;
    const int at_bc = pixel * static_cast<int>(args_.bc_stride);
    unit.at[q] = at;
    unit.u[q] = u_[at];
    unit.dt[q] = dt_[at];
    unit.B[q] = B_[at_bc];
    if constexpr (kOutput) unit.C[q] = C_[at_bc];
  }

  // Scans the unit. `rest` is the number of pixels of the piece that are not
  // yet scanned.
  __device__ __forceinline__ void Scan(const Unit& unit, int rest) {
    float u[kUnit], s[kUnit];
#pragma unroll
    for (int q = 0; q < kUnit; ++q) {
      u[q] = simt::ToFloat(unit.u[q]);
      s[q] = Softplus2(fmaf(simt::ToFloat(unit.dt[q]), kLog2E, bias_));
    }
#pragma unroll
    for (int q = 0; q < kUnit; ++q) {
      h = ScanStep(h, A_, s[q], s[q] * (kLn2 * u[q]), simt::ToFloat(unit.B[q]));
      if constexpr (!kOutput) {
        s_sum += s[q];
      } else if (q < rest) {
        y_[unit.at[q]] = fmaf(D_, u[q], h * simt::ToFloat(unit.C[q]));
      }
    }
  }

  const CrossScanArgs<T>& args_;
  const int count_;
  Pixels pixels_;
  float A_, D_, bias_;
  // These point at the values of the image's first pixel.
  const T* u_;
  const T* dt_;
  const T* B_;
  const T* C_;
  float* y_;
};

// The scratch memory has the shape [directions, images, ends, 2, channels]. For
// each piece of a walk but the last, it holds the state at the piece's end and
// the piece's sum of s. `ends` is the number of these pieces. Returns the
// address of the state of channel d for the walk's first piece. The sum of s is
// `channels` floats after the state.
template <typename T>
__device__ __forceinline__ float* EndsOf(const CrossScanArgs<T>& args,
                                         float* scratch, int image,
                                         int direction, int d, int ends) {
  const int64_t walk = int64_t{direction} * args.images + image;
  return scratch + walk * ends * 2 * args.channels + d;
}

// Stores the state at the end of each piece but the last, computed from h = 0,
// and the piece's sum of s. blockIdx.x counts the pieces of all images,
// blockIdx.y selects channels, and blockIdx.z is the direction.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    EndsKernel(const CrossScanArgs<T> args, float* scratch, int ends) {
  const int d = blockIdx.y * blockDim.x + threadIdx.x;
  if (d >= args.channels) return;
  const int image = blockIdx.x / ends, piece = blockIdx.x % ends;
  PieceScan<T, /*kOutput=*/false> scan(args, image, blockIdx.z, d,
                                       PieceOf(Area(args), piece, ends + 1));
  scan.Walk();
  float* const end = EndsOf(args, scratch, image, blockIdx.z, d, ends) +
                     int64_t{piece} * 2 * args.channels;
  end[0] = scan.h;
  end[args.channels] = scan.s_sum;
}

// Replaces the state at each piece's end, which was computed from h = 0, by the
// true state. blockIdx.x is the image, blockIdx.y selects channels, and
// blockIdx.z is the direction.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    CarryKernel(const CrossScanArgs<T> args, float* scratch, int ends) {
  const int d = blockIdx.y * blockDim.x + threadIdx.x;
  if (d >= args.channels) return;
  float* const end = EndsOf(args, scratch, blockIdx.x, blockIdx.z, d, ends);
  ChainEnds(args.A[blockIdx.z * args.channels + d], end, end + args.channels,
            int64_t{2} * args.channels, ends);
}

// Scans all pieces from their true initial states and writes y. blockIdx.x
// counts the pieces of all images, blockIdx.y selects channels, and blockIdx.z
// is the direction.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    OutputKernel(const CrossScanArgs<T> args, float* scratch, int pieces) {
  const int d = blockIdx.y * blockDim.x + threadIdx.x;
  if (d >= args.channels) return;
  const int image = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  PieceScan<T, /*kOutput=*/true> scan(args, image, blockIdx.z, d,
                                      PieceOf(Area(args), piece, pieces));
  if (piece > 0) {
    scan.h = EndsOf(args, scratch, image, blockIdx.z, d,
                    pieces - 1)[int64_t{piece - 1} * 2 * args.channels];
  }
  scan.Walk();
}

absl::Status Invalid(const char* field, int64_t got, const char* expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      "cross_scan: ", field, ": got ", got, ", expected ", expected));
}

}  // namespace

template <typename T>
absl::Status CrossScanCuda(const CrossScanArgs<T>& args, const ScanPlan& plan,
                           void* scratch, CudaStream stream) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const absl::Status status = CheckScanPlan(plan);
  if (!status.ok()) return status;
  const int pieces = plan.kernel == ScanPlan::kChunk ? plan.chunks : 1;
  const int64_t area = int64_t{args.height} * args.width;
  if (args.images == 0 || area == 0) return absl::OkStatus();
  const int channels = args.channels;
  if (channels < 1 || channels > (1 << 20)) {
    return Invalid("channels", channels, "1 to 1048576");
  }
  // Offsets within a map have 32 bits.
  const int64_t values = area * std::max<int64_t>(channels, args.bc_stride);
  if (values > kMost) return Invalid("values", values, "at most 2147483647");
  if (int64_t{args.images} * pieces > kMost) {
    return Invalid("images times chunks", int64_t{args.images} * pieces,
                   "at most 2147483647");
  }
  if (pieces > 1 && scratch == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross_scan: scratch: got null, expected ",
                     ScanScratchBytes(plan, kDirections * args.images, channels,
                                      /*states=*/1),
                     " bytes"));
  }
  float* const ends = static_cast<float*>(scratch);
  const int threads =
      std::min((channels + kWarp - 1) / kWarp * kWarp, kThreads);
  const auto grid = [&](int x) {
    return dim3(x, (channels + threads - 1) / threads, kDirections);
  };
  if (pieces > 1) {
    const absl::Status first = simt::Launch(
        "cross_scan ends", EndsKernel<T>, grid(args.images * (pieces - 1)),
        dim3(threads), stream, args, ends, pieces - 1);
    if (!first.ok()) return first;
    const absl::Status second =
        simt::Launch("cross_scan carry", CarryKernel<T>, grid(args.images),
                     dim3(threads), stream, args, ends, pieces - 1);
    if (!second.ok()) return second;
  }
  return simt::Launch("cross_scan", OutputKernel<T>, grid(args.images * pieces),
                      dim3(threads), stream, args, ends, pieces);
}

template absl::Status CrossScanCuda(const CrossScanArgs<float>&,
                                    const ScanPlan&, void*, CudaStream);
template absl::Status CrossScanCuda(const CrossScanArgs<BFloat16>&,
                                    const ScanPlan&, void*, CudaStream);
template absl::Status CrossScanCuda(const CrossScanArgs<Float16>&,
                                    const ScanPlan&, void*, CudaStream);

}  // namespace sfmamba::kernels
