#include "client/eval/scores.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace sfmamba::client {

void TopKScore::Add(int rank) {
  ++count_;
  for (int k = 1; k <= 5; ++k) within_[k] += rank >= 0 && rank < k;
}

double TopKScore::Top(int k) const {
  return count_ == 0 ? 0 : static_cast<double>(within_[k]) / count_;
}

absl::Status IouScore::Add(const IndexMap& right, const IndexMap& answer) {
  if (right.width != answer.width || right.height != answer.height) {
    return absl::InvalidArgumentError(
        absl::StrCat("the map is ", right.width, "x", right.height,
                     ", the answer ", answer.width, "x", answer.height));
  }
  const auto at = [this](int index) -> Pixels& {
    if (index >= classes_.size()) classes_.resize(index + 1);
    return classes_[index];
  };
  for (size_t i = 0; i < right.data.size(); ++i) {
    if (right.data[i] == right.ignore) continue;
    ++at(right.data[i]).right;
    if (answer.data[i] == answer.ignore) continue;
    ++at(answer.data[i]).answered;
    if (answer.data[i] == right.data[i]) ++at(right.data[i]).both;
  }
  return absl::OkStatus();
}

double IouScore::MeanIou() const {
  double sum = 0;
  int count = 0;
  for (const Pixels& pixels : classes_) {
    const int64_t either = pixels.right + pixels.answered - pixels.both;
    if (either == 0) continue;
    sum += static_cast<double>(pixels.both) / either;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

double IouScore::Accuracy() const {
  int64_t both = 0, right = 0;
  for (const Pixels& pixels : classes_) {
    both += pixels.both;
    right += pixels.right;
  }
  return right == 0 ? 0 : static_cast<double>(both) / right;
}

}  // namespace sfmamba::client
