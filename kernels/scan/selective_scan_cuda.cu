#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/scan/selective_scan_chunk_cuda.h"
#include "kernels/scan/selective_scan_cuda.h"
#include "kernels/scan/selective_scan_fold_cuda.h"
#include "kernels/scan/selective_scan_lane_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kMost = std::numeric_limits<int32_t>::max();

absl::Status Invalid(const char* field, int64_t got, const char* expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      "selective_scan: ", field, ": got ", got, ", expected ", expected));
}

absl::Status CheckStride(const char* field, int64_t stride, int width) {
  if (stride >= width && stride <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("selective_scan: ", field, ": got ", stride, ", expected ",
                   width, " to ", kMost));
}

template <typename T>
absl::Status CheckPointers(const SelectiveScanArgs<T>& args) {
  const struct {
    const char* name;
    const void* pointer;
  } arrays[] = {{"u", args.u}, {"dt", args.dt},    {"B", args.B},
                {"C", args.C}, {"y", args.y},      {"A", args.A},
                {"D", args.D}, {"bias", args.bias}};
  for (const auto& array : arrays) {
    if (array.pointer == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("selective_scan: ", array.name,
                       ": got null, expected device memory"));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckArgs(const SelectiveScanArgs<T>& args) {
  const int channels = args.channels;
  if (channels < 1 || channels > (1 << 20)) {
    return Invalid("channels", channels, "1 to 1048576");
  }
  if (args.states != 8 && args.states != 16) {
    return Invalid("states", args.states, "8 or 16");
  }
  const struct {
    const char* name;
    int64_t stride;
    int width;
  } rows[] = {{"u_stride", args.u_stride, args.channels},
              {"dt_stride", args.dt_stride, args.channels},
              {"bc_stride", args.bc_stride, args.states},
              {"y_stride", args.y_stride, args.channels},
              {"a_stride", args.a_stride, args.channels}};
  for (const auto& row : rows) {
    absl::Status status = CheckStride(row.name, row.stride, row.width);
    if (!status.ok()) return status;
  }
  const PackedSequences& sequences = args.sequences;
  if (sequences.offsets == nullptr &&
      int64_t{sequences.count} * sequences.length > kMost) {
    return Invalid("tokens", int64_t{sequences.count} * sequences.length,
                   "at most 2147483647");
  }
  return CheckPointers(args);
}

}  // namespace

template <typename T>
absl::Status SelectiveScanCuda(const SelectiveScanArgs<T>& args,
                               const ScanPlan& plan, void* scratch,
                               CudaStream stream) {
  const absl::Status plan_status = CheckScanPlan(plan);
  if (!plan_status.ok()) return plan_status;
  const PackedSequences& sequences = args.sequences;
  if (sequences.count < 0) {
    return Invalid("sequences.count", sequences.count, "at least 0");
  }
  if (sequences.length < 0) {
    return Invalid("sequences.length", sequences.length, "at least 0");
  }
  // There is nothing to scan.
  if (sequences.count == 0) return absl::OkStatus();
  if (sequences.offsets == nullptr && sequences.length == 0) {
    return absl::OkStatus();
  }
  const absl::Status args_status = CheckArgs(args);
  if (!args_status.ok()) return args_status;
  switch (plan.kernel) {
    case ScanPlan::kLane:
      return SelectiveScanLaneCuda(args, plan, stream);
    case ScanPlan::kFold:
      return SelectiveScanFoldCuda(args, plan, stream);
    case ScanPlan::kChunk:
      break;
  }
  if (int64_t{sequences.count} * plan.chunks > kMost) {
    return Invalid("sequences times chunks",
                   int64_t{sequences.count} * plan.chunks,
                   "at most 2147483647");
  }
  if (plan.chunks > 1 && scratch == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "selective_scan: scratch: got null, expected ",
        ScanScratchBytes(plan, sequences.count, args.channels, args.states),
        " bytes"));
  }
  return SelectiveScanChunkCuda(args, plan, static_cast<float*>(scratch),
                                stream);
}

template absl::Status SelectiveScanCuda(const SelectiveScanArgs<float>&,
                                        const ScanPlan&, void*, CudaStream);
template absl::Status SelectiveScanCuda(const SelectiveScanArgs<BFloat16>&,
                                        const ScanPlan&, void*, CudaStream);
template absl::Status SelectiveScanCuda(const SelectiveScanArgs<Float16>&,
                                        const ScanPlan&, void*, CudaStream);

}  // namespace sfmamba::kernels
