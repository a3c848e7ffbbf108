#ifndef SFMAMBA_MODEL_TUNING_SCAN_PLAN_TABLE_H_
#define SFMAMBA_MODEL_TUNING_SCAN_PLAN_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/scan/scan_plan.h"

namespace sfmamba::tuning {

// What a selective scan is asked for, as far as its speed depends on it.
struct ScanShape {
  enum Type { kFloat, kFloat16, kBFloat16 };

  Type type = kFloat;
  int channels = 0;
  int states = 0;
  int sequences = 0;    // NB
  int length = 0;       // Tokens of a sequence; of the longest if ragged.
  bool ragged = false;  // Sequences differ in length.
};

// Such as "bf16 160 channels 8 states 128 x 198".
std::string ToString(const ScanShape& shape);

// Where plans were measured. Those of another device, or of other kernels, are
// no guide. Both strings are printable ASCII, at most 200 characters.
struct ScanDevice {
  std::string name;  // As the driver gives it: "NVIDIA H200".
  int multiprocessors = 0;
  std::string build;  // Of the kernels: ScanBuildId().

  bool operator==(const ScanDevice& other) const {
    return name == other.name && multiprocessors == other.multiprocessors &&
           build == other.build;
  }
};

// The look-up table of batch folding (SF-Mamba, section 3.3) for one device:
// of each shape measured the fastest plan, of which the paper's B1 is a part.
// Among shapes alike in type, channels, states and raggedness there is one
// entry for each power of two of length and of sequences.
class FoldTable {
 public:
  struct Entry {
    ScanShape shape;
    kernels::ScanPlan plan;
    double microseconds = 0;  // Of one scan.
  };

  explicit FoldTable(ScanDevice device) : device_(std::move(device)) {}

  // Of what Text() wrote; INVALID_ARGUMENT naming the line, what was expected
  // there and what was found. Trusts nothing in `text`.
  static absl::StatusOr<FoldTable> Parse(absl::string_view text);
  // Of a file; NOT_FOUND if there is none.
  static absl::StatusOr<FoldTable> Read(const std::string& path);

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
kernels::ScanPlan ChooseScanPlan(const FoldTable* table,
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
