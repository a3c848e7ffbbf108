#ifndef SFMAMBA_MODEL_TUNING_SCAN_PLAN_TABLE_H_
#define SFMAMBA_MODEL_TUNING_SCAN_PLAN_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_shape.h"

namespace sfmamba::tuning {

// The look-up table of batch folding (SF-Mamba, arXiv 2603.16423, 3.3) for one
// device. It holds the fastest plan for each measured shape. The paper's B1 is
// a part of the plan. Lengths and numbers of sequences are rounded to powers of
// two. Shapes that are equal after rounding share one entry.
class ScanPlanTable {
 public:
  struct Entry {
    ScanShape shape;
    kernels::ScanPlan plan;
    double microseconds = 0;  // The time of one scan.
  };

  explicit ScanPlanTable(ScanDevice device) : device_(std::move(device)) {}

  // Parses the output of Text(). `text` is not trusted. If it is invalid,
  // returns INVALID_ARGUMENT with the line, the expected text and the text that
  // was found.
  static absl::StatusOr<ScanPlanTable> Parse(absl::string_view text);
  // Parses a file. NOT_FOUND if it does not exist.
  static absl::StatusOr<ScanPlanTable> Read(const std::string& path);

  // Returns a few lines that describe the device, then one line per entry.
  std::string Text() const;
  // Replaces the file atomically. If there is an error, the file is unchanged.
  absl::Status Write(const std::string& path) const;

  // Adds an entry or replaces the one with the same rounded shape.
  void Set(const Entry& entry);

  // Returns whether there is an entry with the same rounded shape.
  bool Has(const ScanShape& shape) const;

  // Returns the entry of the same type, channels, states and raggedness whose
  // log2(length) and log2(sequences) are nearest. Length and sequences may each
  // differ by a factor of at most 8. Returns null if there is no such entry.
  const Entry* Nearest(const ScanShape& shape) const;

  const ScanDevice& device() const { return device_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  ScanDevice device_;
  std::vector<Entry> entries_;
};

// Returns the plan of the table's nearest entry, with rows in proportion to the
// number of sequences. Returns the device's default plan if `table` is null,
// belongs to another device, or has no near entry.
kernels::ScanPlan ChooseScanPlan(const ScanPlanTable* table,
                                 const ScanDevice& device,
                                 const ScanShape& shape);

// Returns a plan that depends on channels and length alone, so that the order
// of summation is the same for every batch and device.
kernels::ScanPlan DeterministicScanPlan(const ScanShape& shape);

// Returns the divisor of `count` nearest to `wanted`, the smaller one if two
// are equally near. This is f(a, b) of the paper.
int NearestDivisor(int count, double wanted);

// Returns the paper's B1 for a table's ratio of rows to sequences.
inline int FoldRows(int sequences, double ratio) {
  return NearestDivisor(sequences, sequences * ratio);
}

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_PLAN_TABLE_H_
