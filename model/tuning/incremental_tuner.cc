#include "model/tuning/incremental_tuner.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::tuning {
namespace {

absl::Status WithPrefix(absl::string_view prefix, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IncrementalTuner>> IncrementalTuner::Create(
    const model::ScanTuner::Options& options, const ScanDevice& device,
    MakeTimer make_timer, std::function<absl::Time()> now) {
  ScanPlanTable table(device);
  bool keeps = !options.path.empty();
  if (keeps) {
    absl::StatusOr<ScanPlanTable> file = ScanPlanTable::Read(options.path);
    if (file.ok()) {
      // A file for another kind of GPU is left unchanged, because a machine
      // with that GPU needs it.
      keeps = file->device().name == device.name;
      if (!keeps) {
        options.failed(absl::FailedPreconditionError(absl::StrCat(
            "the fold table is ignored: ", options.path, ": device: expected ",
            device.name, ", got ", file->device().name)));
      }
      // A file of another build, or for another number of multiprocessors, is
      // not used either, because its times may be different. All scans are then
      // measured again, and the file is overwritten.
      if (file->device() == device) table = *std::move(file);
    } else if (!absl::IsNotFound(file.status())) {
      return file.status();
    }
  }
  return absl::WrapUnique(new IncrementalTuner(
      options, std::move(table), keeps, std::move(make_timer), std::move(now)));
}

IncrementalTuner::IncrementalTuner(const model::ScanTuner::Options& options,
                                   ScanPlanTable table, bool keeps,
                                   MakeTimer make_timer,
                                   std::function<absl::Time()> now)
    : options_(options),
      make_timer_(std::move(make_timer)),
      now_(std::move(now)),
      table_(std::move(table)),
      keeps_(keeps) {}

ScanPlanTable IncrementalTuner::TableFor(absl::Span<const ScanShape> scans) {
  std::vector<ScanShape> unknown;
  for (const ScanShape& scan : scans) {
    if (!table_.Has(scan)) unknown.push_back(scan);
  }
  if (unknown.empty() || options_.budget <= absl::ZeroDuration()) return table_;
  const size_t known = table_.entries().size();
  const absl::Time start = now_();
  const absl::Status status = Measure(unknown);
  const size_t added = table_.entries().size() - known;
  if (status.ok()) {
    options_.measured({static_cast<int>(unknown.size()),
                       static_cast<int>(added), now_() - start});
  } else {
    options_.failed(WithPrefix("scans cannot be measured", status));
  }
  if (added > 0 && keeps_) WriteBack();
  return table_;
}

absl::Status IncrementalTuner::Measure(absl::Span<const ScanShape> scans) {
  const absl::StatusOr<MeasureScan> measure = make_timer_();
  if (!measure.ok()) return measure.status();
  const absl::StatusOr<ScanPlanTable> found = SearchScanPlans(
      table_.device(), scans, *measure, {options_.budget, now_});
  if (!found.ok()) return found.status();
  for (const ScanPlanTable::Entry& entry : found->entries()) table_.Set(entry);
  return absl::OkStatus();
}

void IncrementalTuner::WriteBack() {
  const absl::Status written = table_.Write(options_.path);
  if (written.ok()) return;
  options_.failed(WithPrefix(
      "the fold table is not written, so the next start measures again",
      written));
}

}  // namespace sfmamba::tuning
