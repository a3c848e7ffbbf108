#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/detection/mask_runs.h"
#include "kernels/pixels/resize_taps.h"

namespace sfmamba::kernels {
namespace {

// A 64-bit word has one bit for each cell of a line. It also has kMargin bits
// before the first cell and kMargin bits after the last cell. These bits
// represent the zeros that MaskPaste reads outside of the mask.
constexpr int kMargin = 2;
constexpr int kMaxSide = 64 - 2 * kMargin;
// The number of lines whose far cells are found by one call.
constexpr int kStrip = 256;
// An upper limit of a sample's rounding error, with a wide margin. It is
// relative to the largest absolute value of the mask and the threshold.
constexpr float kRounding = 1.0f / (1 << 18);
// If the absolute values of a mask are below this limit, their differences do
// not overflow. Other masks are sampled pixel by pixel.
constexpr float kLargest = 1e30f;

// The mask cells that the pixels of the lines sample on each axis, and their
// weights.
struct Taps {
  ResizeTaps columns, rows;
};

// Returns the sample that MaskPaste computes for a pixel, by the same
// operations in the same order. `x` and `y` are relative to the first pixel of
// the first line.
float Sample(const MaskRunsArgs& args, const Taps& taps, int x, int y) {
  const int* columns = &taps.columns.index[2 * x];
  const float* column_weights = &taps.columns.weight[2 * x];
  const float* high = args.mask + taps.rows.index[2 * y] * args.side;
  const float* low = args.mask + taps.rows.index[2 * y + 1] * args.side;
  return taps.rows.weight[2 * y] * (column_weights[0] * high[columns[0]] +
                                    column_weights[1] * high[columns[1]]) +
         taps.rows.weight[2 * y + 1] * (column_weights[0] * low[columns[0]] +
                                        column_weights[1] * low[columns[1]]);
}

// Writes the edges of one line's runs. Callers report changes in the order of
// the pixels.
class EdgeWriter {
 public:
  // `first` is the position of the line's pixel 0 in the picture.
  EdgeWriter(int first, base::LineRuns* runs) : first_(first), runs_(*runs) {}

  // Reports that the line's pixels from `at` on are set or not set.
  void Become(bool set, int at) {
    if (set == set_) return;
    runs_.edges.push_back(first_ + at);
    set_ = set;
  }
  void End(int at) {
    Become(false, at);
    runs_.line_ends.push_back(runs_.edges.size());
  }

 private:
  const int first_;
  base::LineRuns& runs_;
  bool set_ = false;
};

void SampleEachPixel(const MaskRunsArgs& args, const Taps& taps,
                     base::LineRuns* runs) {
  const PixelRect& area = args.area;
  const int pixels = args.by_rows ? area.width() : area.height();
  for (int line = 0; line < args.end - args.begin; ++line) {
    EdgeWriter edges(args.by_rows ? area.left : area.top, runs);
    for (int i = 0; i < pixels; ++i) {
      const float value = args.by_rows ? Sample(args, taps, i, line)
                                       : Sample(args, taps, line, i);
      edges.Become(value >= args.threshold, i);
    }
    edges.End(pixels);
  }
}

// Finds the runs of a mask's lines from the values of the mask's cells.
class RunFinder {
 public:
  RunFinder(const MaskRunsArgs& args, const Taps& taps, CpuIsa isa,
            base::LineRuns* runs)
      : args_(args),
        taps_(taps),
        isa_(isa),
        runs_(*runs),
        along_(args.by_rows ? taps.columns : taps.rows),
        across_(args.by_rows ? taps.rows : taps.columns),
        first_pixel_(args.by_rows ? args.area.left : args.area.top),
        pixels_per_cell_(
            (args.by_rows ? args.x2 - args.x1 : args.y2 - args.y1) /
            static_cast<float>(args.side)) {
    const int side = args.side;
    cells_.resize(side * side);
    float largest = std::abs(args.threshold);
    bool finite = true;
    for (int k = 0; k < side; ++k) {
      for (int i = 0; i < side; ++i) {
        const float value =
            args.by_rows ? args.mask[i * side + k] : args.mask[k * side + i];
        cells_[k * side + i] = value;
        largest = std::max(largest, std::abs(value));
        finite = finite && std::abs(value) < kLargest;
      }
    }
    // If rounding_ is infinite, no cell is far from the threshold, so every
    // pixel is sampled.
    rounding_ =
        finite ? largest * kRounding : std::numeric_limits<float>::infinity();
    FindBands();
  }

  void Run() {
    std::array<uint64_t, kStrip> above, below;
    const int lines = args_.end - args_.begin;
    for (int begin = 0; begin < lines; begin += kStrip) {
      FarCellsArgs far{};
      far.cells = cells_.data();
      far.side = args_.side;
      far.lines = std::min(kStrip, lines - begin);
      far.index = &across_.index[2 * begin];
      far.weight = &across_.weight[2 * begin];
      far.high = args_.threshold + rounding_;
      far.low = args_.threshold - rounding_;
      far.above = above.data();
      far.below = below.data();
      isa_ == CpuIsa::kAvx512 ? MaskRunsAvx512(far) : MaskRunsAvx2(far);
      const uint64_t outside = ~(((uint64_t{1} << args_.side) - 1) << kMargin);
      for (int i = 0; i < far.lines; ++i) {
        uint64_t high = above[i] << kMargin, low = below[i] << kMargin;
        if (0.0f > far.high) high |= outside;
        if (0.0f < far.low) low |= outside;
        FindRuns(begin + i, high & high >> 1, low & low >> 1);
      }
    }
  }

 private:
  // The number of bands in a line. Band b is the range of pixels between the
  // cells b - kMargin and b - kMargin + 1.
  int bands() const { return args_.side + 2 * kMargin - 1; }

  // Sets bands_ and between_ from MaskPaste's weights.
  void FindBands() {
    const int side = args_.side, pixels = along_.index.size() / 2;
    between_.resize(pixels);
    bands_.fill(pixels);
    int band = -1;
    for (int i = 0; i < pixels; ++i) {
      const float first = along_.weight[2 * i],
                  second = along_.weight[2 * i + 1];
      const int index = along_.index[2 * i];
      int own = index + kMargin;
      between_[i] = second;
      if (first == 0 && second == 0) {  // Outside of the mask.
        own = band < kMargin - 1 ? 0 : bands() - 1;
      } else if (first == 0) {
        own = kMargin - 1;
      } else if (index == side - 1) {
        between_[i] = 1.0f - first;
      }
      while (band < own) bands_[++band] = i;
    }
  }

  // Returns the value of cell k of a line, or 0 if k is outside of the mask.
  float Cell(int line, int k) const {
    if (k < 0 || k >= args_.side) return 0;
    const float* cells = &cells_[k * args_.side];
    const int* index = &across_.index[2 * line];
    const float* weight = &across_.weight[2 * line];
    return weight[0] * cells[index[0]] + weight[1] * cells[index[1]];
  }

  // Writes the runs of one line. Bit b of `set` is 1 if all pixels of band b
  // are known to be set. Bit b of `unset` is 1 if all are known to be unset.
  void FindRuns(int line, uint64_t set, uint64_t unset) {
    EdgeWriter edges(first_pixel_, &runs_);
    const uint64_t all = (uint64_t{1} << bands()) - 1;
    int done = 0;  // The number of bands written.
    for (uint64_t mixed = all & ~(set | unset);; mixed &= mixed - 1) {
      const int band = mixed == 0 ? bands() : __builtin_ctzll(mixed);
      if (bands_[done] < bands_[band]) {  // Not empty.
        edges.Become((set >> done & 1) != 0, bands_[done]);
      }
      if (mixed == 0) break;
      Cross(line, band, &edges);
      done = band + 1;
    }
    edges.End(between_.size());
  }

  // Writes the edges of a band in which some pixels may be set and others not.
  void Cross(int line, int band, EdgeWriter* edges) {
    const int begin = bands_[band], end = bands_[band + 1];
    if (begin == end) return;
    const float first = Cell(line, band - kMargin);
    const float change = Cell(line, band - kMargin + 1) - first;
    int sampled = begin, sampled_end = end;  // The pixels near the crossing.
    if (std::abs(change) > 4 * rounding_) {
      const float crossing = (args_.threshold - first) / change;
      const float margin = rounding_ / std::abs(change);
      sampled = Find(begin, end, crossing - margin);
      sampled_end = sampled;
      while (sampled_end < end && between_[sampled_end] <= crossing + margin) {
        ++sampled_end;
      }
    }
    if (begin < sampled) edges->Become(change < 0, begin);
    for (int i = sampled; i < sampled_end; ++i) {
      const float value = args_.by_rows ? Sample(args_, taps_, i, line)
                                        : Sample(args_, taps_, line, i);
      edges->Become(value >= args_.threshold, i);
    }
    if (sampled_end < end) edges->Become(change > 0, sampled_end);
  }

  // Returns the first pixel of [begin, end) whose position between_ is >=
  // `place`. Returns `end` if there is none.
  int Find(int begin, int end, float place) const {
    const float guess = (place - between_[begin]) * pixels_per_cell_;
    int i = begin;
    if (guess > 0) {
      i += static_cast<int>(std::min(guess, static_cast<float>(end - begin)));
    }
    while (i > begin && between_[i - 1] >= place) --i;
    while (i < end && between_[i] < place) ++i;
    return i;
  }

  const MaskRunsArgs& args_;
  const Taps& taps_;
  const CpuIsa isa_;
  base::LineRuns& runs_;
  const ResizeTaps& along_;   // Cells and weights of each pixel in a line.
  const ResizeTaps& across_;  // Cells and weights of each line.
  const int first_pixel_;
  const float pixels_per_cell_;
  std::vector<float> cells_;  // [cells along a line, cells across lines]
  float rounding_;
  // Element b is the first pixel of band b, and element bands() is the number
  // of pixels in a line. An empty band has the same first pixel as the next
  // band.
  std::array<int, 64> bands_;
  // Each pixel's position between the two cells of its band, from 0 to 1. The
  // positions ascend within a band.
  std::vector<float> between_;
};

}  // namespace

void MaskRunsCpu(const MaskRunsArgs& args, base::LineRuns* runs, CpuIsa isa) {
  if (args.begin >= args.end) return;
  PixelRect part = args.area;  // Narrowed to the lines [begin, end).
  (args.by_rows ? part.top : part.left) = args.begin;
  (args.by_rows ? part.bottom : part.right) = args.end;
  const Taps taps{
      PasteTaps(args.x1, args.x2, args.side, part.left, part.width()),
      PasteTaps(args.y1, args.y2, args.side, part.top, part.height())};
  if (isa == CpuIsa::kScalar || args.side > kMaxSide) {
    return SampleEachPixel(args, taps, runs);
  }
  RunFinder(args, taps, isa, runs).Run();
}

}  // namespace sfmamba::kernels
