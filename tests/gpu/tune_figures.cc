#include "tests/gpu/tune_figures.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "model/config.h"
#include "model/tuning/model_scans.h"
#include "tests/gpu/scan_figures.h"

namespace sfmamba {

std::vector<tuning::ScanShape> ShapesToTune() {
  std::vector<tuning::ScanShape> shapes;
  for (const bool whole_map : {false, true}) {
    for (const model::Precision precision :
         {model::Precision::kBFloat16, model::Precision::kFloat16,
          model::Precision::kFloat32}) {
      for (const char* variant : {"sf_mamba_t", "sf_mamba_s", "sf_mamba_b"}) {
        model::ModelConfig config = *model::VariantConfig(variant);
        config.precision = precision;
        if (whole_map) {
          config.image_size = 896;
          config.backbone.window_mode = model::WindowMode::kFull;
        }
        for (const tuning::ScanShape& shape :
             tuning::ScanShapes(config, whole_map ? 8 : 512)) {
          shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

TuneRecorder::TuneRecorder(const Setting& setting, tuning::MeasureScan measure,
                           std::function<void(const std::string&)> write)
    : setting_(setting),
      measure_(std::move(measure)),
      write_(std::move(write)) {}

absl::StatusOr<double> TuneRecorder::Measure(const tuning::ScanShape& shape,
                                             const kernels::ScanPlan& plan) {
  if (ToString(shape) != ToString(shape_)) {
    Finish();
    shape_ = shape;
  }
  const absl::StatusOr<double> us = measure_(shape, plan);
  if (us.ok()) timed_.push_back({plan, *us});
  return us;
}

void TuneRecorder::Finish() {
  if (timed_.empty()) return;
  const Timed* best = &timed_[0];
  double unfolded = 0;
  for (const Timed& one : timed_) {
    if (one.us < best->us) best = &one;
    if (one.plan.rows == 0 && (unfolded == 0 || one.us < unfolded)) {
      unfolded = one.us;
    }
  }
  write_(absl::StrFormat(
      R"({"benchmark": "fold", "shape": %s, "kernel": "%s", "plan": %s, )"
      R"("us": %.3f, "default_plan": %s, "default_us": %.3f, )"
      R"("unfolded_us": %.3f, "plans": %d, %s})",
      base::JsonString(ToString(shape_)), NameOf(best->plan.kernel),
      base::JsonString(ToString(best->plan)), best->us,
      base::JsonString(absl::StrCat(NameOf(timed_[0].plan.kernel), ", ",
                                    ToString(timed_[0].plan))),
      timed_[0].us, unfolded, timed_.size(), setting_.Json()));
  timed_.clear();
}

}  // namespace sfmamba
