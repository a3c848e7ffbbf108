#include "server/prediction/merge_detections.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/mask.h"

namespace sfmamba::prediction {
namespace {

using base::LineRuns;
using model::Box;
using model::Detection;
using model::InstanceMask;

using MaskPointer = std::shared_ptr<const InstanceMask>;

class ShiftedMask final : public InstanceMask {
 public:
  ShiftedMask(MaskPointer mask, int left, int top)
      : mask_(std::move(mask)), left_(left), top_(top) {}

  Bounds bounds() const override {
    Bounds bounds = mask_->bounds();
    bounds.left += left_;
    bounds.top += top_;
    return bounds;
  }
  void AddRows(int begin, int end, LineRuns* runs) const override {
    const size_t first = runs->edges.size();
    mask_->AddRows(begin - top_, end - top_, runs);
    Move(left_, first, runs);
  }
  void AddColumns(int begin, int end, LineRuns* runs) const override {
    const size_t first = runs->edges.size();
    mask_->AddColumns(begin - left_, end - left_, runs);
    Move(top_, first, runs);
  }

 private:
  static void Move(int by, size_t first, LineRuns* runs) {
    for (size_t i = first; i < runs->edges.size(); ++i) runs->edges[i] += by;
  }

  const MaskPointer mask_;
  const int left_, top_;
};

class MaskUnion final : public InstanceMask {
 public:
  explicit MaskUnion(std::vector<MaskPointer> masks)
      : masks_(std::move(masks)), bounds_(masks_[0]->bounds()) {
    for (const MaskPointer& mask : masks_) {
      const Bounds one = mask->bounds();
      const int right = std::max(bounds_.left + bounds_.width,  //
                                 one.left + one.width);
      const int bottom =
          std::max(bounds_.top + bounds_.height, one.top + one.height);
      bounds_.left = std::min(bounds_.left, one.left);
      bounds_.top = std::min(bounds_.top, one.top);
      bounds_.width = right - bounds_.left;
      bounds_.height = bottom - bounds_.top;
    }
  }

  Bounds bounds() const override { return bounds_; }
  void AddRows(int begin, int end, LineRuns* runs) const override {
    Add(begin, end, &InstanceMask::AddRows, &Bounds::top, &Bounds::height,
        runs);
  }
  void AddColumns(int begin, int end, LineRuns* runs) const override {
    Add(begin, end, &InstanceMask::AddColumns, &Bounds::left, &Bounds::width,
        runs);
  }

 private:
  using AddLines = void (InstanceMask::*)(int, int, LineRuns*) const;

  // Appends the lines [begin, end) of the union to `runs`. If `add_lines` is
  // AddRows, lines are rows, `first` is &Bounds::top and `size` is
  // &Bounds::height. If `add_lines` is AddColumns, lines are columns, `first`
  // is &Bounds::left and `size` is &Bounds::width.
  void Add(int begin, int end, AddLines add_lines, int Bounds::*first,
           int Bounds::*size, LineRuns* runs) const {
    // The runs of set pixels of all masks. There is one list of runs for each
    // line. A run is a pair (begin, end).
    std::vector<std::vector<std::pair<int, int>>> lines(end - begin);
    LineRuns own;
    for (const MaskPointer& mask : masks_) {
      const Bounds bounds = mask->bounds();
      const int own_begin = std::max(begin, bounds.*first);
      const int own_end = std::min(end, bounds.*first + bounds.*size);
      if (own_begin >= own_end) continue;
      own.clear();
      (mask.get()->*add_lines)(own_begin, own_end, &own);
      for (int i = 0; i < own.lines(); ++i) {
        const absl::Span<const int> edges = own.line(i);
        for (size_t k = 0; k < edges.size(); k += 2) {
          lines[own_begin - begin + i].push_back({edges[k], edges[k + 1]});
        }
      }
    }
    for (std::vector<std::pair<int, int>>& line : lines) {
      std::sort(line.begin(), line.end());
      const size_t line_begin = runs->edges.size();
      for (const auto& [from, to] : line) {
        if (runs->edges.size() > line_begin && from <= runs->edges.back()) {
          runs->edges.back() = std::max(runs->edges.back(), to);
        } else {
          runs->edges.insert(runs->edges.end(), {from, to});
        }
      }
      runs->line_ends.push_back(runs->edges.size());
    }
  }

  const std::vector<MaskPointer> masks_;
  Bounds bounds_;
};

template <typename Float>
Float Area(const Box& box) {
  return (Float{box.x2} - Float{box.x1}) * (Float{box.y2} - Float{box.y1});
}

// Returns true if the boxes overlap by at least `rule.threshold`. Computes with
// numbers of type `Float`. The boxes of two detections are compared in single
// precision. GREEDY_NMM also compares the box of a detection with the box of an
// object, which surrounds all detections merged so far. This comparison uses
// double precision. The SAHI library uses the same precisions.
template <typename Float>
bool Match(const Box& a, const Box& b, const MergeRule& rule) {
  const Float width = std::max(
      Float{0}, Float{std::min(a.x2, b.x2)} - Float{std::max(a.x1, b.x1)});
  const Float height = std::max(
      Float{0}, Float{std::min(a.y2, b.y2)} - Float{std::max(a.y1, b.y1)});
  const Float both = width * height;
  const Float area_a = Area<Float>(a), area_b = Area<Float>(b);
  const Float whole = rule.match == v1::Tiles::IOS ? std::min(area_a, area_b)
                                                   : area_a + area_b - both;
  return (whole > 0 ? both / whole : 0) >= rule.threshold;
}

Box Around(const Box& a, const Box& b) {
  return {std::min(a.x1, b.x1), std::min(a.y1, b.y1), std::max(a.x2, b.x2),
          std::max(a.y2, b.y2)};
}

}  // namespace

void Shift(int left, int top, model::Detections* detections) {
  for (Detection& one : detections->detections) {
    one.box = {one.box.x1 + left, one.box.y1 + top, one.box.x2 + left,
               one.box.y2 + top};
    if (one.mask == nullptr) continue;
    one.mask = std::make_shared<ShiftedMask>(std::move(one.mask), left, top);
  }
}

MaskPointer UnionOf(std::vector<MaskPointer> masks) {
  if (masks.size() == 1) return std::move(masks[0]);
  return std::make_shared<MaskUnion>(std::move(masks));
}

DetectionMerger::DetectionMerger(std::vector<Detection> detections,
                                 const MergeRule& rule)
    : rule_(rule), left_(std::move(detections)) {
  std::stable_sort(
      left_.begin(), left_.end(), [](const Detection& a, const Detection& b) {
        return std::tie(b.score, a.box.x1, a.box.y1, a.box.x2, a.box.y2) <
               std::tie(a.score, b.box.x1, b.box.y1, b.box.x2, b.box.y2);
      });
}

bool DetectionMerger::done() const {
  return left_.empty() ||
         static_cast<int>(objects_.size()) >= rule_.max_detections;
}

void DetectionMerger::MergeNext() {
  const Box best = left_[0].box;
  const int best_class = left_[0].class_id;
  Detection& object = objects_.emplace_back(std::move(left_[0]));
  std::vector<MaskPointer> masks = {object.mask};
  size_t kept = 0;
  for (size_t i = 1; i < left_.size(); ++i) {
    Detection& other = left_[i];
    const bool matches =
        (rule_.class_agnostic || other.class_id == best_class) &&
        Match<float>(best, other.box, rule_);
    if (!matches) {
      left_[kept++] = std::move(other);
      continue;
    }
    if (rule_.merge != v1::Tiles::GREEDY_NMM ||
        !Match<double>(object.box, other.box, rule_)) {
      continue;
    }
    object.box = Around(object.box, other.box);
    // If `other` has the same score as the object, the object takes the class
    // of `other`, as in SAHI.
    if (other.score == object.score) object.class_id = other.class_id;
    if (other.mask != nullptr) masks.push_back(std::move(other.mask));
  }
  left_.resize(kept);
  if (object.mask != nullptr && masks.size() > 1) {
    object.mask = UnionOf(std::move(masks));
  }
}

}  // namespace sfmamba::prediction
