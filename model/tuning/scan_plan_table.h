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

// The look-up table for batch folding (SF-Mamba, arXiv 2603.16423, 3.3) on one
// device. It contains the fastest plan for each measured shape. A plan includes
// the number of rows into which the sequences are folded (the paper's B1).
// Shapes share an entry if their lengths and numbers of sequences are equal
// after rounding to powers of two.
class ScanPlanTable {
 public:
  struct Entry {
    ScanShape shape;
    kernels::ScanPlan plan;
    double microseconds = 0;  // The time of one scan.
  };

  explicit ScanPlanTable(ScanDevice device) : device_(std::move(device)) {}

  // Parses a text in the format of Text(). `text` is not trusted. If it is
  // invalid, returns INVALID_ARGUMENT with the line, the expected text and the
  // actual text.
  static absl::StatusOr<ScanPlanTable> Parse(absl::string_view text);
  // Reads and parses a file. Returns NOT_FOUND if it does not exist.
  static absl::StatusOr<ScanPlanTable> Read(const std::string& path);

  // Returns the table as text. A few lines describe the device. They are
  // followed by one line for each entry.
  std::string Text() const;
  // Replaces the file atomically. If there is an error, the file is unchanged.
  absl::Status Write(const std::string& path) const;

  // Adds an entry. Replaces an entry with the same rounded shape.
  void Set(const Entry& entry);

  // Returns whether there is an entry with the same rounded shape.
  bool Has(const ScanShape& shape) const;

  // Returns the entry with the nearest log2(length) and log2(sequences). Its
  // type, channels, states and raggedness must be equal. Its length and its
  // number of sequences may each differ by a factor of at most 8. Returns null
  // if there is no such entry.
  const Entry* Nearest(const ScanShape& shape) const;

  const ScanDevice& device() const { return device_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  ScanDevice device_;
  std::vector<Entry> entries_;
};

// Returns the plan of the table's nearest entry. The plan's number of rows is
// scaled in proportion to the number of sequences. Returns the device's default
// plan if `table` is null, belongs to another device, or has no entry near
// enough.
kernels::ScanPlan ChooseScanPlan(const ScanPlanTable* table,
                                 const ScanDevice& device,
                                 const ScanShape& shape);

// Returns a plan that depends only on the number of states, the number of
// channels and the length. Its order of summation is therefore the same for
// every batch and device.
kernels::ScanPlan DeterministicScanPlan(const ScanShape& shape);

// Returns the divisor of `count` that is nearest to `wanted`. If two are
// equally near, returns the smaller one. This is the paper's f(a, b).
int NearestDivisor(int count, double wanted);

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_PLAN_TABLE_H_
