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

// The look-up table of batch folding (SF-Mamba, section 3.3) for one device:
// of each shape measured the fastest plan, of which the paper's B1 is a part.
// Among shapes alike in type, channels, states and raggedness there is one
// entry for each power of two of length and of sequences.
class ScanPlanTable {
 public:
  struct Entry {
    ScanShape shape;
    kernels::ScanPlan plan;
    double microseconds = 0;  // Of one scan.
  };

  explicit ScanPlanTable(ScanDevice device) : device_(std::move(device)) {}

  // Of what Text() wrote; INVALID_ARGUMENT naming the line, what was expected
  // there and what was found. Trusts nothing in `text`.
  static absl::StatusOr<ScanPlanTable> Parse(absl::string_view text);
  // Of a file; NOT_FOUND if there is none.
  static absl::StatusOr<ScanPlanTable> Read(const std::string& path);

  // A few lines on the device, then one line an entry.
  std::string Text() const;
  // Replaces the file as a whole or, on an error, not at all.
  absl::Status Write(const std::string& path) const;

  // Replaces the entry of that power of two, if there is one.
  void Set(const Entry& entry);

  // Whether there is an entry of that power of two.
  bool Has(const ScanShape& shape) const;

  // The nearest entry alike in all else, by the distance of log2(length) and
  // log2(sequences); null if the nearest is more than 8 times off in either.
  const Entry* Nearest(const ScanShape& shape) const;

  const ScanDevice& device() const { return device_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  ScanDevice device_;
  std::vector<Entry> entries_;
};

// The plan of a scan: of the table's nearest entry, with its share of rows; the
// default for the device if `table` is null, another device's, or has none.
kernels::ScanPlan ChooseScanPlan(const ScanPlanTable* table,
                                 const ScanDevice& device,
                                 const ScanShape& shape);

// The plan that sums up in one order whatever the batch and the device: it
// follows from channels and length alone.
kernels::ScanPlan DeterministicScanPlan(const ScanShape& shape);

// f(a, b) of the paper: the divisor of `count` nearest to `wanted`; of two the
// smaller.
int NearestDivisor(int count, double wanted);

// The paper's B1 for sequences whose table says `ratio` rows a sequence.
inline int FoldRows(int sequences, double ratio) {
  return NearestDivisor(sequences, sequences * ratio);
}

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_PLAN_TABLE_H_
