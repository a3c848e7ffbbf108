#include "client/eval/average_precision.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sfmamba::client {
namespace {

constexpr int kNone = -1;
constexpr int kRecalls = 101;
constexpr size_t kMaxDetections = 100;  // Limit per class and image.

// Returns element i of numpy.linspace(0.5, 0.95, 10), bit for bit.
double Threshold(int i) {
  constexpr int kLast = AveragePrecision::kThresholds - 1;
  return i == kLast ? 0.95 : 0.5 + i * ((0.95 - 0.5) / kLast);
}

// Returns the mean precision over 101 values of recall. `ranked` has an element
// for each counted detection, the best first. The element is true if the
// detection is a true positive.
double MeanPrecision(const std::vector<bool>& ranked, int64_t objects) {
  std::vector<double> precisions, recalls;
  int64_t right = 0;
  for (const bool is_right : ranked) {
    right += is_right;
    precisions.push_back(static_cast<double>(right) / (precisions.size() + 1));
    recalls.push_back(static_cast<double>(right) / objects);
  }
  // Each precision becomes the best precision at this recall or at a higher
  // recall.
  for (size_t i = precisions.size(); i-- > 1;) {
    precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  }
  double sum = 0;
  for (int i = 0; i < kRecalls; ++i) {
    const double recall = i == kRecalls - 1 ? 1 : i * 0.01;
    const auto at = std::lower_bound(recalls.begin(), recalls.end(), recall);
    // A recall that is not reached has precision 0.
    if (at == recalls.end()) break;
    sum += precisions[at - recalls.begin()];
  }
  return sum / kRecalls;
}

}  // namespace

void AveragePrecision::Add(int64_t class_id, int64_t image_id,
                           const Matches& matches) {
  const int objects = static_cast<int>(matches.crowds.size());
  std::vector<int> ranked(matches.scores.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  std::stable_sort(ranked.begin(), ranked.end(), [&](int a, int b) {
    return matches.scores[a] > matches.scores[b];
  });
  ranked.resize(std::min(ranked.size(), kMaxDetections));

  Class& one = classes_[class_id];
  one.objects +=
      std::count(matches.crowds.begin(), matches.crowds.end(), false);
  std::vector<std::array<bool, kThresholds>> taken(objects);
  for (const int index : ranked) {
    std::vector<double> ious(objects);
    for (int j = 0; j < objects; ++j) ious[j] = matches.iou(index, j);
    Detection detection{matches.scores[index], image_id, {}};
    for (int t = 0; t < kThresholds; ++t) {
      const auto best_of = [&](bool crowds) {
        int best = kNone;
        double least = Threshold(t);
        for (int j = 0; j < objects; ++j) {
          if (matches.crowds[j] != crowds || taken[j][t] || ious[j] < least) {
            continue;
          }
          least = ious[j];
          best = j;
        }
        return best;
      };
      const int object = best_of(/*crowds=*/false);
      if (object != kNone) {
        detection.outcomes[t] = Outcome::kTrue;
        taken[object][t] = true;
      } else if (best_of(/*crowds=*/true) != kNone) {
        detection.outcomes[t] = Outcome::kIgnored;
      }
    }
    one.detections.push_back(detection);
  }
}

AveragePrecision::Figures AveragePrecision::FiguresOf(const Class& one) {
  std::vector<Detection> ranked = one.detections;
  std::stable_sort(
      ranked.begin(), ranked.end(), [](const Detection& a, const Detection& b) {
        return a.score != b.score ? a.score > b.score : a.image_id < b.image_id;
      });
  Figures figures;
  for (int t = 0; t < kThresholds; ++t) {
    std::vector<bool> counted;
    for (const Detection& detection : ranked) {
      if (detection.outcomes[t] == Outcome::kIgnored) continue;
      counted.push_back(detection.outcomes[t] == Outcome::kTrue);
    }
    const double precision = MeanPrecision(counted, one.objects);
    if (t == 0) figures.ap50 = precision;
    figures.ap += precision / kThresholds;
  }
  return figures;
}

std::map<int64_t, AveragePrecision::Figures> AveragePrecision::ByClass() const {
  std::map<int64_t, Figures> figures;
  for (const auto& [id, one] : classes_) {
    if (one.objects > 0) figures[id] = FiguresOf(one);
  }
  return figures;
}

AveragePrecision::Figures AveragePrecision::Mean() const {
  const std::map<int64_t, Figures> classes = ByClass();
  if (classes.empty()) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    return {kNaN, kNaN};
  }
  Figures mean;
  for (const auto& [id, figures] : classes) {
    mean.ap50 += figures.ap50 / classes.size();
    mean.ap += figures.ap / classes.size();
  }
  return mean;
}

}  // namespace sfmamba::client
