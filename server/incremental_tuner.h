#ifndef SFMAMBA_SERVER_INCREMENTAL_TUNER_H_
#define SFMAMBA_SERVER_INCREMENTAL_TUNER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/tuning/scan_plan_table.h"
#include "model/tuning/scan_search.h"
#include "server/observability/log.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// A GPU's fold table while models are loaded. Before each model is, what the
// table lacks of its scans is measured, and written back to the table's file,
// so that the next start need not.
//
// For one thread.
class IncrementalTuner {
 public:
  struct Options {
    // The table's file, which need not be there yet; empty: none. That of
    // another kind of GPU is passed over and left as it is.
    std::string path;
    // The budget is that of one model; 0: nothing is measured.
    tuning::ScanSearchOptions tuning;
  };
  // Makes what measures; called for each model of which something is to be
  // measured.
  using MakeTimer = std::function<absl::StatusOr<tuning::MeasureScan>()>;

  // Reads the file; its error if it is there and is no table. `log` outlives
  // the tuner.
  static absl::StatusOr<std::unique_ptr<IncrementalTuner>> Create(
      Options options, const tuning::ScanDevice& device, MakeTimer make_timer,
      observability::Logger* log);

  // What is known once a model's `scans` have been measured so far as there was
  // time. If measuring or writing fails that is logged: models run without.
  tuning::ScanPlanTable TableFor(absl::Span<const tuning::ScanShape> scans);

 private:
  // `keeps`: the file is the table's, or is to become it.
  IncrementalTuner(Options options, tuning::ScanPlanTable table, bool keeps,
                   MakeTimer make_timer, observability::Logger* log);

  // Adds what there is time for to table_.
  absl::Status Measure(absl::Span<const tuning::ScanShape> scans);
  void WriteBack();

  const Options options_;
  const MakeTimer make_timer_;
  observability::Logger& log_;
  tuning::ScanPlanTable table_;
  const bool keeps_;
};

// Of a server of this config; deterministic plans are not measured.
IncrementalTuner::Options IncrementalTunerOptions(
    const v1::ServerConfig& config);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_INCREMENTAL_TUNER_H_
