// One program with all tests and measurements that need a GPU. It needs a
// driver and libtorch for CUDA. It must run in the root of the repository.
//   suite
//     Runs the tests. Flags of GoogleTest, such as --gtest_filter, are allowed.
//   suite --setting --out=FILE
//     Appends a line of JSON to FILE: the device and the build of the program.
//   suite --benchmark --out=FILE
//     Measures kernels and models. Appends a line of JSON for each result.
//   suite --tune=TABLE --out=FILE
//     Writes the file TABLE, a fold table. It has the fastest scan plan of this
//     device for each shape. Appends a line of JSON to FILE for each shape.
//   suite --once=VARIANT,PRECISION,BATCH
//     Runs one batch of a model, for a profiler.

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "model/tuning/scan_plan_table.h"
#include "model/tuning/scan_timer.h"
#include "tests/gpu/benchmark.h"
#include "tests/gpu/model_device.h"
#include "tests/kernels/cuda/device_memory.h"

using Words = std::vector<std::string>;

ABSL_FLAG(bool, setting, false, "say what the device is, and its clocks");
ABSL_FLAG(bool, benchmark, false, "measure instead of testing");
ABSL_FLAG(Words, parts, Words({"scan", "pass", "engine"}), "of the benchmark");
ABSL_FLAG(Words, groups, {},
          "scans of these: model, paper, long, mixed; models of these: batch, "
          "resolution, fold; empty: all");
ABSL_FLAG(Words, variants, {}, "models, such as sf_mamba_t; empty: all");
ABSL_FLAG(Words, precisions, {}, "of models: bf16, fp16, fp32; empty: all");
ABSL_FLAG(Words, batches, {}, "images of a batch; empty: all");
ABSL_FLAG(Words, slots, Words({"2"}), "batches that run at a time");
ABSL_FLAG(absl::Duration, duration, absl::Seconds(1),
          "of each measurement of a whole model, two a case");
ABSL_FLAG(absl::Duration, sustained, absl::ZeroDuration(),
          "of replays without pauses, two measurements a case; 0: none");
ABSL_FLAG(int, rounds, 1, "of whole models, which are measured in turn");
ABSL_FLAG(std::string, fold_table, "", "that models load");
ABSL_FLAG(std::string, out, "gpu.jsonl", "file that lines are appended to");
ABSL_FLAG(std::string, tune, "", "write a fold table to this file");
ABSL_FLAG(absl::Duration, tune_budget, absl::Minutes(3), "time for --tune");
ABSL_FLAG(std::string, once, "", "run one pass of this model, without graphs");
ABSL_FLAG(bool, tiny, false,
          "cases keep their names, but all sizes are tiny: a rehearsal");

namespace sfmamba {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

// Parses integers. Returns INVALID_ARGUMENT if a word is not an integer above
// 0.
absl::StatusOr<std::vector<int>> Numbers(const Words& words) {
  std::vector<int> numbers;
  for (const std::string& word : words) {
    int number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a number, got \"", word, "\""));
    }
    numbers.push_back(number);
  }
  return numbers;
}

// Returns the cases that the flags select. Returns INVALID_ARGUMENT if
// --batches or --slots contains a word that is not an integer above 0.
absl::StatusOr<EngineFilter> FilterOfFlags() {
  EngineFilter filter;
  filter.groups = absl::GetFlag(FLAGS_groups);
  filter.variants = absl::GetFlag(FLAGS_variants);
  filter.precisions = absl::GetFlag(FLAGS_precisions);
  const auto batches = Numbers(absl::GetFlag(FLAGS_batches));
  if (!batches.ok()) return batches.status();
  filter.batches = *batches;
  const auto slots = Numbers(absl::GetFlag(FLAGS_slots));
  if (!slots.ok()) return slots.status();
  filter.slots = *slots;
  return filter;
}

absl::StatusOr<EngineOptions> OptionsOfFlags() {
  EngineOptions options;
  options.device = OnModelDevice();
  options.duration = absl::GetFlag(FLAGS_duration);
  options.sustained = absl::GetFlag(FLAGS_sustained);
  options.rounds = absl::GetFlag(FLAGS_rounds);
  options.tiny = absl::GetFlag(FLAGS_tiny);
  const std::string path = absl::GetFlag(FLAGS_fold_table);
  if (path.empty()) return options;
  absl::StatusOr<tuning::ScanPlanTable> table =
      tuning::ScanPlanTable::Read(path);
  if (!table.ok()) return table.status();
  const absl::StatusOr<tuning::ScanDevice> device =
      tuning::ScanDeviceOf(/*gpu=*/0);
  if (!device.ok()) return device.status();
  if (!(table->device() == *device)) {
    std::fprintf(stderr,
                 "%s is ignored: expected %s with build %s, got %s with build "
                 "%s\n",
                 path.c_str(), device->name.c_str(), device->build.c_str(),
                 table->device().name.c_str(), table->device().build.c_str());
    return options;
  }
  options.device.scan_plans =
      std::make_shared<tuning::ScanPlanTable>(*std::move(table));
  return options;
}

absl::Status BenchmarkPart(const std::string& part, const EngineFilter& filter,
                           const EngineOptions& options, const Setting& setting,
                           const WriteLine& write) {
  if (part == "engine") {
    MeasureEngines(EngineCases(filter), options, setting, write);
    return absl::OkStatus();
  }
  if (part == "pass") return MeasurePasses(setting, options.tiny, write);
  if (part != "scan") {
    return absl::InvalidArgumentError(absl::StrCat("no part ", part));
  }
  std::vector<ScanCase> cases = ScanCases(filter.groups, filter.batches);
  if (options.tiny) {
    for (ScanCase& scan : cases) scan = Tiny(scan);
  }
  const absl::Status status = MeasureScans(cases, setting, write);
  return status.ok() ? MeasureBucketScans(cases, setting, write) : status;
}

absl::Status Benchmark(const Setting& setting, const WriteLine& write) {
  const absl::StatusOr<EngineFilter> filter = FilterOfFlags();
  if (!filter.ok()) return filter.status();
  const absl::StatusOr<EngineOptions> options = OptionsOfFlags();
  if (!options.ok()) return options.status();
  for (const std::string& part : absl::GetFlag(FLAGS_parts)) {
    const absl::Status status =
        BenchmarkPart(part, *filter, *options, setting, write);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Once() {
  const auto engine = ParseEngineCase(absl::GetFlag(FLAGS_once));
  if (!engine.ok()) return engine.status();
  const absl::StatusOr<EngineOptions> options = OptionsOfFlags();
  if (!options.ok()) return options.status();
  return RunOnce(*engine, *options);
}

// Measures what the flags select. Also writes the GPU's clocks before and after
// the measurements.
absl::Status Measure(const WriteLine& write) {
  const bool tiny = absl::GetFlag(FLAGS_tiny);
  write(ReadClocks().Line("before"));
  const absl::StatusOr<Setting> setting = ReadSetting(tiny);
  if (!setting.ok()) return setting.status();
  absl::Status status;
  if (absl::GetFlag(FLAGS_setting)) write(setting->Line());
  if (absl::GetFlag(FLAGS_benchmark)) status = Benchmark(*setting, write);
  const std::string table = absl::GetFlag(FLAGS_tune);
  if (status.ok() && !table.empty()) {
    status =
        Tune(table, absl::GetFlag(FLAGS_tune_budget), tiny, *setting, write);
  }
  write(ReadClocks().Line("after"));
  return status;
}

int MeasureToFile() {
  const std::string path = absl::GetFlag(FLAGS_out);
  std::ofstream lines(path, std::ios::app);
  const absl::Status status = Measure([&](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    lines << line << std::endl;
  });
  if (!status.ok()) return Fail(status);
  if (lines) return 0;
  return Fail(absl::UnavailableError(absl::StrCat("cannot write to ", path)));
}

int Run() {
  if (!kernels::HasDevice()) {
    std::fprintf(stderr, "skipped: no GPU\n");
    return 0;
  }
  if (!absl::GetFlag(FLAGS_once).empty()) {
    const absl::Status status = Once();
    return status.ok() ? 0 : Fail(status);
  }
  const bool measures = absl::GetFlag(FLAGS_setting) ||
                        absl::GetFlag(FLAGS_benchmark) ||
                        !absl::GetFlag(FLAGS_tune).empty();
  return measures ? MeasureToFile() : RUN_ALL_TESTS();
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return sfmamba::Run();
}
