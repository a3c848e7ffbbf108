#include "model/tuning/scan_plan_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace sfmamba::tuning {
namespace {

// Returns whether a plan that was measured at `a` may be used at `b`. Both
// numbers are lengths, or both are numbers of sequences.
bool Near(int64_t a, int64_t b) { return a <= 8 * b && b <= 8 * a; }

bool Alike(const ScanShape& a, const ScanShape& b) {
  return a.type == b.type && a.channels == b.channels && a.states == b.states &&
         a.ragged == b.ragged;
}

int Bucket(int count) { return std::lround(std::log2(count)); }

bool SameBucket(const ScanShape& a, const ScanShape& b) {
  return Alike(a, b) && Bucket(a.length) == Bucket(b.length) &&
         Bucket(a.sequences) == Bucket(b.sequences);
}

// Returns about sequences * ratio rows. If possible within a factor of 2, the
// result is a divisor of `sequences`, so that all rows have the same length.
int ShareOfRows(int sequences, double ratio) {
  const double wanted = std::max(1.0, sequences * ratio);
  const int divisor = NearestDivisor(sequences, wanted);
  if (divisor <= 2 * wanted && 2 * divisor >= wanted) return divisor;
  return std::lround(wanted);
}

}  // namespace

void ScanPlanTable::Set(const Entry& entry) {
  for (Entry& old : entries_) {
    if (SameBucket(old.shape, entry.shape)) {
      old = entry;
      return;
    }
  }
  entries_.push_back(entry);
}

bool ScanPlanTable::Has(const ScanShape& shape) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return SameBucket(entry.shape, shape);
  });
}

const ScanPlanTable::Entry* ScanPlanTable::Nearest(
    const ScanShape& shape) const {
  const Entry* nearest = nullptr;
  double least = INFINITY;
  for (const Entry& entry : entries_) {
    const ScanShape& known = entry.shape;
    if (!Alike(known, shape) || !Near(known.length, shape.length) ||
        !Near(known.sequences, shape.sequences)) {
      continue;
    }
    const double distance =
        std::hypot(std::log2(double(known.length) / shape.length),
                   std::log2(double(known.sequences) / shape.sequences));
    if (distance < least) {
      least = distance;
      nearest = &entry;
    }
  }
  return nearest;
}

kernels::ScanPlan ChooseScanPlan(const ScanPlanTable* table,
                                 const ScanDevice& device,
                                 const ScanShape& shape) {
  const ScanPlanTable::Entry* entry =
      table != nullptr && table->device() == device ? table->Nearest(shape)
                                                    : nullptr;
  if (entry == nullptr) {
    return kernels::DefaultScanPlan(device.multiprocessors, shape.sequences,
                                    shape.length, shape.channels, shape.states);
  }
  kernels::ScanPlan plan = entry->plan;
  if (plan.rows > 0) {
    plan.rows = ShareOfRows(shape.sequences,
                            double(plan.rows) / entry->shape.sequences);
  }
  return plan;
}

kernels::ScanPlan DeterministicScanPlan(const ScanShape& shape) {
  // A sequence gets about 20 warps of threads, which suits both a full batch
  // and a single image. Long sequences get more threads, because a batch
  // contains only a few of them.
  constexpr int kThreads = 640, kLong = 800;
  kernels::ScanPlan plan;
  if (shape.states == 1) {  // CrossScanCuda, which has a thread per channel.
    constexpr int kPiece = 128, kMostPieces = 256;
    plan.kernel = kernels::ScanPlan::kChunk;
    plan.chunks = std::clamp(shape.length / kPiece, 1, kMostPieces);
    return plan;
  }
  if (shape.length >= kLong) {
    plan.lanes = 8;
    return plan;
  }
  while (plan.lanes < 4 && plan.lanes * shape.channels < kThreads) {
    plan.lanes *= 2;
  }
  return plan;
}

int NearestDivisor(int count, double wanted) {
  int nearest = 1;
  for (int divisor = 2; divisor <= count; ++divisor) {
    if (count % divisor == 0 &&
        std::fabs(divisor - wanted) < std::fabs(nearest - wanted)) {
      nearest = divisor;
    }
  }
  return nearest;
}

}  // namespace sfmamba::tuning
