#include "model/tuning/scan_search.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace sfmamba::tuning {
namespace {

auto Fields(const kernels::ScanPlan& plan) {
  return std::tie(plan.kernel, plan.threads, plan.lanes,
                  plan.channels_per_thread, plan.rows, plan.items, plan.chunks);
}

void Add(const kernels::ScanPlan& plan, std::vector<kernels::ScanPlan>* plans) {
  for (const kernels::ScanPlan& other : *plans) {
    if (Fields(other) == Fields(plan)) return;
  }
  plans->push_back(plan);
}

// Adds plans of the lane kernel. Few rows are good, because sequences in the
// same row load parameters only once. But the device is fully used only if
// there is a warp for each of the four schedulers of all multiprocessors.
void AddLane(int multiprocessors, const ScanShape& shape,
             std::vector<kernels::ScanPlan>* plans) {
  for (int lanes = 1; lanes <= 8; lanes *= 2) {
    for (int wide = 1; wide <= (lanes == 1 ? 2 : 1); ++wide) {
      if (shape.channels % wide != 0) continue;
      kernels::ScanPlan plan;
      plan.lanes = lanes;
      plan.channels_per_thread = wide;
      Add(plan, plans);
      const int warps = (shape.channels * lanes / wide + 31) / 32;
      for (int sequences = 2; sequences <= 8; sequences *= 2) {
        plan.rows = (shape.sequences + sequences - 1) / sequences;
        if (plan.rows * warps < 4 * multiprocessors) break;
        Add(plan, plans);
      }
    }
  }
}

// Adds plans of the fold kernel. The paper's B1 is halved repeatedly, from one
// row per sequence down to a single row. Rows that are too long to be scanned
// at once are also tried with fewer tokens per thread.
void AddFold(const ScanShape& shape, std::vector<kernels::ScanPlan>* plans) {
  constexpr int kMost = 16;
  for (int rows = shape.sequences; rows >= 1; rows /= 2) {
    const int64_t sequences = (shape.sequences + rows - 1) / rows;
    kernels::ScanPlan plan;
    plan.kernel = kernels::ScanPlan::kFold;
    plan.rows = rows;
    plan.items = kernels::FoldItems(sequences * shape.length);
    Add(plan, plans);
    if (plan.items < kMost) continue;
    for (const int items : {7, 8, 13}) {
      plan.items = items;
      Add(plan, plans);
    }
  }
}

// Adds plans of the chunk kernel, which cuts sequences into pieces. Does so
// only if there are too few sequences for the whole device and if they are long
// enough.
void AddChunk(int multiprocessors, const ScanShape& shape,
              std::vector<kernels::ScanPlan>* plans) {
  constexpr int kLeast = 32;  // A piece has at least this many tokens.
  const int warps = (shape.channels + 31) / 32 * shape.sequences;
  if (warps >= 8 * multiprocessors) return;
  for (int chunks = 4; chunks <= 256 && shape.length / chunks >= kLeast;
       chunks *= 2) {
    for (int lanes = 1; lanes <= 8; lanes *= 2) {
      kernels::ScanPlan plan;
      plan.kernel = kernels::ScanPlan::kChunk;
      plan.lanes = lanes;
      plan.chunks = chunks;
      Add(plan, plans);
    }
  }
}

// Measures all plans. Sets entry->plan to the fastest one and
// entry->microseconds to its time. Sets the time to 0 if no plan could be
// measured, or if `late` returned true before all plans were measured.
absl::Status TuneShape(int multiprocessors, const MeasureScan& measure,
                       const std::function<bool()>& late,
                       ScanPlanTable::Entry* entry) {
  for (const kernels::ScanPlan& plan :
       CandidatePlans(multiprocessors, entry->shape)) {
    if (late()) {
      // Not all plans were measured. The best of them may be slower than the
      // plan of the nearest entry, which is used instead.
      entry->microseconds = 0;
      return absl::OkStatus();
    }
    const absl::StatusOr<double> time = measure(entry->shape, plan);
    // Some candidate plans are not supported by the kernels, and a shape may
    // not fit into the GPU's memory.
    if (absl::IsInvalidArgument(time.status())) continue;
    if (absl::IsResourceExhausted(time.status())) return absl::OkStatus();
    if (!time.ok()) {
      return absl::Status(
          time.status().code(),
          absl::StrCat(ToString(entry->shape), ": ", time.status().message()));
    }
    if (entry->microseconds == 0 || *time < entry->microseconds) {
      entry->plan = plan;
      entry->microseconds = *time;
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<kernels::ScanPlan> CandidatePlans(int multiprocessors,
                                              const ScanShape& shape) {
  std::vector<kernels::ScanPlan> plans = {
      kernels::DefaultScanPlan(multiprocessors, shape.sequences, shape.length,
                               shape.channels, shape.states)};
  AddLane(multiprocessors, shape, &plans);
  AddFold(shape, &plans);
  AddChunk(multiprocessors, shape, &plans);
  return plans;
}

std::vector<int> RaggedLengths(const ScanShape& shape) {
  std::vector<int> lengths;
  for (int i = 0; i < shape.sequences; ++i) {
    // The order of the places is 0, last, 1, last - 1, ...
    const int place = i % 2 == 0 ? i / 2 : shape.sequences - 1 - i / 2;
    const double share =
        shape.sequences == 1 ? 1 : double(place) / (shape.sequences - 1);
    const double length = shape.length * (0.25 + 0.75 * share);
    lengths.push_back(std::max(1, static_cast<int>(length)));
  }
  return lengths;
}

absl::StatusOr<ScanPlanTable> SearchScanPlans(
    const ScanDevice& device, absl::Span<const ScanShape> shapes,
    const MeasureScan& measure, const ScanSearchOptions& options) {
  const absl::Time end = options.now() + options.budget;
  const auto late = [&] { return options.now() >= end; };
  ScanPlanTable table(device);
  for (const ScanShape& shape : shapes) {
    if (late()) break;
    ScanPlanTable::Entry entry{shape};
    const absl::Status status =
        TuneShape(device.multiprocessors, measure, late, &entry);
    if (!status.ok()) return status;
    if (entry.microseconds > 0) table.Set(entry);
  }
  return table;
}

absl::StatusOr<ScanPlanTable> TuneToFile(const ScanDevice& device,
                                         absl::Span<const ScanShape> shapes,
                                         const MeasureScan& measure,
                                         const ScanSearchOptions& options,
                                         const std::string& path) {
  absl::StatusOr<ScanPlanTable> table =
      SearchScanPlans(device, shapes, measure, options);
  if (!table.ok()) return table;
  const absl::Status written = table->Write(path);
  if (!written.ok()) return written;
  return table;
}

}  // namespace sfmamba::tuning
