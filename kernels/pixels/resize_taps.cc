#include "kernels/pixels/resize_taps.h"

#include <algorithm>

namespace sfmamba::kernels {
namespace {

struct Tap {
  int index;
  float weight;
};

// The samples that an output depends on. There are at most four, and all are
// different.
class TapList {
 public:
  void Add(Tap tap) {
    if (tap.weight == 0) return;
    for (int t = 0; t < count_; ++t) {
      if (taps_[t].index == tap.index) {
        taps_[t].weight += tap.weight;
        return;
      }
    }
    taps_[count_++] = tap;
  }

  int count() const { return count_; }
  Tap operator[](int t) const {
    return t < count_ ? taps_[t] : Tap{taps_[0].index, 0.0f};
  }

 private:
  Tap taps_[4];
  int count_ = 0;
};

// The two samples that output i of one resize depends on.
struct Neighbours {
  Neighbours(int size, int out_size, int i) {
    const float scale = static_cast<float>(size) / static_cast<float>(out_size);
    const float source =
        std::max((static_cast<float>(i) + 0.5f) * scale - 0.5f, 0.0f);
    const int low = std::min(static_cast<int>(source), size - 1);
    const float fraction = std::min(source - static_cast<float>(low), 1.0f);
    taps[0] = {low, 1.0f - fraction};
    taps[1] = {std::min(low + 1, size - 1), fraction};
  }

  Tap taps[2];
};

TapList TapsOf(int size, int middle_size, int out_size, int i) {
  TapList list;
  for (const Tap& outer : Neighbours(middle_size, out_size, i).taps) {
    if (outer.weight == 0) continue;
    for (const Tap& inner : Neighbours(size, middle_size, outer.index).taps) {
      list.Add({inner.index, outer.weight * inner.weight});
    }
  }
  return list;
}

}  // namespace

ResizeTaps ComposeResizes(int size, int middle_size, int out_size) {
  std::vector<TapList> lists;
  lists.reserve(out_size);
  ResizeTaps taps;
  taps.count = 1;
  for (int i = 0; i < out_size; ++i) {
    lists.push_back(TapsOf(size, middle_size, out_size, i));
    taps.count = std::max(taps.count, lists.back().count());
  }
  for (const TapList& list : lists) {
    for (int t = 0; t < taps.count; ++t) {
      taps.index.push_back(list[t].index);
      taps.weight.push_back(list[t].weight);
    }
  }
  return taps;
}

}  // namespace sfmamba::kernels
