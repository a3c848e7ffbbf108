#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/detection/nms.h"

namespace sfmamba::kernels {
namespace {

// Like the vector instructions, these return b if either argument is a NaN.
float Min(float a, float b) { return a < b ? a : b; }
float Max(float a, float b) { return a > b ? a : b; }

int GroupOf(const NmsArgs& args, int i) {
  return args.groups == nullptr ? 0 : args.groups[i];
}

std::vector<NmsBox> ShiftedBoxes(const NmsArgs& args) {
  float largest = 0;
  for (int i = 0; i < 4 * args.num_boxes; ++i) {
    largest = Max(args.boxes[i], largest);
  }
  std::vector<NmsBox> boxes(args.num_boxes);
  for (int i = 0; i < args.num_boxes; ++i) {
    const float* from = args.boxes + 4 * i;
    const float shift = static_cast<float>(GroupOf(args, i)) * (largest + 1);
    NmsBox& box = boxes[i];
    box = {from[0] + shift, from[1] + shift, from[2] + shift, from[3] + shift};
    box.area = (box.x2 - box.x1) * (box.y2 - box.y1);
  }
  return boxes;
}

// Returns the indices of all boxes in order of descending score.
std::vector<int32_t> BestFirst(const NmsArgs& args) {
  struct Entry {
    float score;
    int32_t index;
  };
  std::vector<Entry> entries(args.num_boxes);
  for (int i = 0; i < args.num_boxes; ++i) {
    const float lowest = -std::numeric_limits<float>::infinity();
    entries[i] = {Max(args.scores[i], lowest), i};
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
  });
  std::vector<int32_t> order(args.num_boxes);
  for (int i = 0; i < args.num_boxes; ++i) order[i] = entries[i].index;
  return order;
}

float Iou(const NmsBox& a, const NmsBox& b) {
  const float width = Min(a.x2, b.x2) - Max(a.x1, b.x1);
  const float height = Min(a.y2, b.y2) - Max(a.y1, b.y1);
  const float overlap = Max(0, width) * Max(0, height);
  return overlap / (a.area + b.area - overlap);
}

// The kept boxes of each group. There is one array per coordinate, in which
// each group has a range.
class KeptBoxes {
 public:
  explicit KeptBoxes(const NmsArgs& args) {
    std::vector<int> counts;
    for (int i = 0; i < args.num_boxes; ++i) {
      const size_t group = GroupOf(args, i);
      if (group >= counts.size()) counts.resize(group + 1);
      ++counts[group];
    }
    groups_.resize(counts.size());
    int total = 0;
    for (size_t group = 0; group < counts.size(); ++group) {
      groups_[group].begin = total;
      constexpr int kPadding = NmsColumns::kPadding;
      const int most = std::clamp(args.max_kept, 0, counts[group]);
      total += (most + kPadding - 1) / kPadding * kPadding;
    }
    for (std::vector<float>* column : {&x1_, &y1_, &x2_, &y2_}) {
      column->resize(total);
    }
    area_.resize(total, std::numeric_limits<float>::quiet_NaN());
  }

  NmsColumns OfGroup(int group) const {
    const auto [begin, count] = groups_[group];
    return {count,
            x1_.data() + begin,
            y1_.data() + begin,
            x2_.data() + begin,
            y2_.data() + begin,
            area_.data() + begin};
  }

  void Add(int group, const NmsBox& box) {
    const int i = groups_[group].begin + groups_[group].count++;
    x1_[i] = box.x1;
    y1_[i] = box.y1;
    x2_[i] = box.x2;
    y2_[i] = box.y2;
    area_[i] = box.area;
  }

 private:
  struct Range {
    int begin, count;
  };

  std::vector<Range> groups_;
  std::vector<float> x1_, y1_, x2_, y2_, area_;
};

}  // namespace

int NmsScalar(const NmsArgs& args) {
  const std::vector<int32_t> order = BestFirst(args);
  const std::vector<NmsBox> boxes = ShiftedBoxes(args);
  std::vector<bool> struck(args.num_boxes);
  int num_kept = 0;
  for (size_t i = 0; i < order.size() && num_kept < args.max_kept; ++i) {
    const int best = order[i];
    if (struck[best]) continue;
    args.kept[num_kept++] = best;
    for (size_t j = i + 1; j < order.size(); ++j) {
      const int other = order[j];
      if (GroupOf(args, other) == GroupOf(args, best) &&
          Iou(boxes[best], boxes[other]) > args.iou_threshold) {
        struck[other] = true;
      }
    }
  }
  return num_kept;
}

int NmsCpu(const NmsArgs& args, CpuIsa isa) {
  if (isa == CpuIsa::kScalar) return NmsScalar(args);
  const auto overlaps_any =
      isa == CpuIsa::kAvx512 ? OverlapsAnyAvx512 : OverlapsAnyAvx2;
  const std::vector<NmsBox> boxes = ShiftedBoxes(args);
  KeptBoxes kept(args);
  int num_kept = 0;
  for (int32_t i : BestFirst(args)) {
    if (num_kept >= args.max_kept) break;
    const int group = GroupOf(args, i);
    if (overlaps_any(kept.OfGroup(group), boxes[i], args.iou_threshold)) {
      continue;
    }
    kept.Add(group, boxes[i]);
    args.kept[num_kept++] = i;
  }
  return num_kept;
}

}  // namespace sfmamba::kernels
