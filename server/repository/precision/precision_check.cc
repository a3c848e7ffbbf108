#include "server/repository/precision/precision_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/batching/batch_runner.h"
#include "server/repository/golden.h"

namespace sfmamba::repository {
namespace {

// The limits that results in a reduced precision must meet when they are
// compared with the results in fp32.
struct Bar {
  // The maximum difference between a logit in the reduced precision and the
  // fp32 logit, as a fraction of the range of the image's fp32 logits.
  double logits;
  // The minimum fraction of equal pixels in a class map.
  double equal;
};

Bar BarOf(model::Precision precision) {
  switch (precision) {
    case model::Precision::kFloat32:
      return {0, 1};
    case model::Precision::kBFloat16:
    case model::Precision::kFloat16:
    case model::Precision::kInt8:
      return {0.03, 0.99};
  }
  return {0, 1};  // Unreachable, because all cases are handled.
}

// Two classes are considered equally good for an image if their fp32 logits
// differ by at most this fraction of the range of the image's fp32 logits.
constexpr double kTie = 0.01;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The combined results of the comparisons of all images.
struct Found {
  bool finite = true;
  bool comparable = true;  // False if the results differ in kind or size.
  // The largest difference between a logit in the reduced precision and the
  // fp32 logit, as a fraction of the range of the image's fp32 logits.
  double logits = 0;
  bool first_class = true;
  // The number of images for which the class with the highest logit is the same
  // in both precisions.
  size_t same_first = 0;
  double equal = 1;  // The smallest fraction of equal pixels in a class map.
  absl::Status detections;
};

size_t First(const std::vector<float>& logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

// Returns `difference` as a fraction of `range`. If `range` is 0, returns 0 for
// no difference and infinity for any other difference.
double PartOf(double range, double difference) {
  if (difference == 0) return 0;
  return range > 0 ? difference / range : kInfinity;
}

void Compare(const model::Classification& reduced,
             const model::Classification& full, Found* found) {
  const std::vector<float>& a = reduced.logits;
  const std::vector<float>& b = full.logits;
  if (a.size() != b.size() || a.empty()) {
    found->comparable = false;
    return;
  }
  if (!found->finite) return;
  const auto [least, most] = std::minmax_element(b.begin(), b.end());
  const double range = double{*most} - *least;
  for (size_t i = 0; i < a.size(); ++i) {
    found->logits =
        std::max(found->logits, PartOf(range, std::abs(double{a[i]} - b[i])));
  }
  found->same_first += First(a) == First(b);
  // The reduced precision may choose another class if fp32 considers both
  // classes equally good. See kTie.
  found->first_class =
      found->first_class && PartOf(range, double{*most} - b[First(a)]) <= kTie;
}

void Compare(const model::Detections& reduced, const model::Detections& full,
             Found* found) {
  found->detections.Update(CheckResult(reduced, full));
}

void Compare(const model::Segmentation& reduced,
             const model::Segmentation& full, Found* found) {
  const size_t pixels = full.labels.size();
  if (reduced.labels.size() != pixels || pixels == 0) {
    found->comparable = false;
    return;
  }
  int64_t equal = 0;
  for (size_t i = 0; i < pixels; ++i) {
    equal += reduced.labels[i] == full.labels[i];
  }
  found->equal = std::min(found->equal, double(equal) / pixels);
}

}  // namespace

PrecisionCheck ComparePrecisions(model::Precision precision,
                                 const std::vector<model::Result>& reduced,
                                 const std::vector<model::Result>& full) {
  if (full.empty() || reduced.size() != full.size()) {
    return {false, absl::StrCat("got ", reduced.size(), " answers, expected ",
                                full.size())};
  }
  const Bar bar = BarOf(precision);
  Found found;
  for (size_t i = 0; i < full.size(); ++i) {
    if (reduced[i].index() != full[i].index()) {
      return {false, "the answers are for different tasks"};
    }
    found.finite = found.finite && batching::IsFinite(reduced[i]) &&
                   batching::IsFinite(full[i]);
    std::visit(
        [&](const auto& answer) {
          using T = std::decay_t<decltype(answer)>;
          Compare(std::get<T>(reduced[i]), answer, &found);
        },
        full[i]);
  }
  if (!found.comparable) return {false, "the answers differ in size"};
  if (!found.finite) return {false, "some values are not finite"};
  const std::string images = absl::StrCat(" on ", full.size(), " images");
  if (std::holds_alternative<model::Classification>(full[0])) {
    return {
        found.logits <= bar.logits && found.first_class,
        absl::StrFormat("logits differ by %.2f %% of their range, expected at "
                        "most %.0f %%; the first class is the same on %d of %d "
                        "images, expected on all but ties",
                        100 * found.logits, 100 * bar.logits, found.same_first,
                        full.size())};
  }
  if (std::holds_alternative<model::Segmentation>(full[0])) {
    return {found.equal >= bar.equal,
            absl::StrFormat(
                "%.2f %% of the pixels are equal, expected at least %.0f %%",
                100 * found.equal, 100 * bar.equal) +
                images};
  }
  if (found.detections.ok()) {
    return {true, "the detections are the same" + images};
  }
  return {false, std::string(found.detections.message())};
}

}  // namespace sfmamba::repository
