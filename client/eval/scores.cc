#include "client/eval/scores.h"

#include "absl/strings/str_cat.h"

namespace sfmamba::client {

void TopKScore::Add(int rank) {
  ++count_;
  for (int k = 1; k <= 5; ++k) within_[k] += rank >= 0 && rank < k;
}

double TopKScore::Top(int k) const {
  return count_ == 0 ? 0 : static_cast<double>(within_[k]) / count_;
}

void Confusion::Add(int right, int answered, int64_t count) {
  counts_[right][answered] += count;
}

absl::Status Confusion::Add(const IndexMap& right, const IndexMap& answer) {
  if (right.width != answer.width || right.height != answer.height) {
    return absl::InvalidArgumentError(
        absl::StrCat("the map is ", right.width, "x", right.height,
                     ", the answer ", answer.width, "x", answer.height));
  }
  const size_t size = right.data.size();
  for (size_t i = 0, end; i < size; i = end) {
    const int wanted = right.data[i], got = answer.data[i];
    for (end = i + 1;
         end < size && right.data[end] == wanted && answer.data[end] == got;) {
      ++end;
    }
    if (wanted == right.ignore) continue;
    Add(wanted, got == answer.ignore ? kNone : got, end - i);
  }
  return absl::OkStatus();
}

int64_t Confusion::at(int right, int answered) const {
  const auto row = counts_.find(right);
  if (row == counts_.end()) return 0;
  const auto count = row->second.find(answered);
  return count == row->second.end() ? 0 : count->second;
}

std::map<int, Confusion::Counts> Confusion::Classes() const {
  std::map<int, Counts> classes;
  for (const auto& [right, row] : counts_) {
    for (const auto& [answered, count] : row) {
      classes[right].right += count;
      if (answered != kNone) classes[answered].answered += count;
      if (answered == right) classes[right].both += count;
    }
  }
  return classes;
}

double Confusion::MeanIou() const {
  const std::map<int, Counts> classes = Classes();
  double sum = 0;
  for (const auto& [number, counts] : classes) sum += counts.Iou();
  return classes.empty() ? 0 : sum / classes.size();
}

double Confusion::Accuracy() const {
  int64_t both = 0, right = 0;
  for (const auto& [number, counts] : Classes()) {
    both += counts.both;
    right += counts.right;
  }
  return right == 0 ? 0 : static_cast<double>(both) / right;
}

}  // namespace sfmamba::client
