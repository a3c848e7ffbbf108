#include "server/incremental_tuner.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"

namespace sfmamba::server {

absl::StatusOr<std::unique_ptr<IncrementalTuner>> IncrementalTuner::Create(
    Options options, const tuning::ScanDevice& device, MakeTimer make_timer,
    observability::Logger* log) {
  tuning::ScanPlanTable table(device);
  bool keeps = !options.path.empty();
  if (keeps) {
    absl::StatusOr<tuning::ScanPlanTable> file =
        tuning::ScanPlanTable::Read(options.path);
    if (file.ok()) {
      keeps = file->device().name == device.name;
      if (!keeps) {
        log->Warning(observability::LogModule::kModels,
                     "the fold table is another GPU's",
                     {{"fold_table", options.path},
                      {"expected", device.name},
                      {"got", file->device().name}});
      }
      if (file->device() == device) table = *std::move(file);
    } else if (!absl::IsNotFound(file.status())) {
      return file.status();
    }
  }
  return absl::WrapUnique(new IncrementalTuner(
      std::move(options), std::move(table), keeps, std::move(make_timer), log));
}

IncrementalTuner::IncrementalTuner(Options options, tuning::ScanPlanTable table,
                                   bool keeps, MakeTimer make_timer,
                                   observability::Logger* log)
    : options_(std::move(options)),
      make_timer_(std::move(make_timer)),
      log_(*log),
      table_(std::move(table)),
      keeps_(keeps) {}

tuning::ScanPlanTable IncrementalTuner::TableFor(
    absl::Span<const tuning::ScanShape> scans) {
  std::vector<tuning::ScanShape> missing;
  for (const tuning::ScanShape& scan : scans) {
    if (!table_.Has(scan)) missing.push_back(scan);
  }
  if (missing.empty() || options_.tuning.budget <= absl::ZeroDuration()) {
    return table_;
  }
  const size_t known = table_.entries().size();
  const absl::Time start = options_.tuning.now();
  const absl::Status status = Measure(missing);
  const size_t added = table_.entries().size() - known;
  if (status.ok()) {
    log_.Info(
        observability::LogModule::kModels, "scans are measured",
        {{"unknown", missing.size()},
         {"measured", added},
         {"seconds", absl::ToDoubleSeconds(options_.tuning.now() - start)}});
  } else {
    log_.Warning(observability::LogModule::kModels, "scans cannot be measured",
                 {{"error", status.message()}});
  }
  if (added > 0 && keeps_) WriteBack();
  return table_;
}

absl::Status IncrementalTuner::Measure(
    absl::Span<const tuning::ScanShape> scans) {
  const absl::StatusOr<tuning::MeasureScan> measure = make_timer_();
  if (!measure.ok()) return measure.status();
  const absl::StatusOr<tuning::ScanPlanTable> found = tuning::SearchScanPlans(
      table_.device(), scans, *measure, options_.tuning);
  if (!found.ok()) return found.status();
  for (const tuning::ScanPlanTable::Entry& entry : found->entries())
    table_.Set(entry);
  return absl::OkStatus();
}

void IncrementalTuner::WriteBack() {
  const absl::Status written = table_.Write(options_.path);
  if (written.ok()) return;
  log_.Warning(observability::LogModule::kModels,
               "the fold table is not written: the next start measures again",
               {{"error", written.message()}});
}

IncrementalTuner::Options IncrementalTunerOptions(
    const v1::ServerConfig& config) {
  IncrementalTuner::Options options;
  options.path = config.fold_table();
  options.tuning.budget = config.deterministic()
                              ? absl::ZeroDuration()
                              : base::FromProto(config.tune_budget());
  return options;
}

}  // namespace sfmamba::server
