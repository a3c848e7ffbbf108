#include <cmath>
#include <limits>

#include "kernels/segmentation/segmentation_argmax.h"

namespace sfmamba::kernels {
namespace {

// Interpolates the logits of one pixel from a resized row.
struct Pixel {
  float operator[](int k) const {
    float value = 0;
    for (int t = 0; t < taps; ++t) {
      value += weight[t] * row[int64_t{index[t]} * classes + k];
    }
    return value;
  }

  const float* row;  // [width, classes]
  int classes;
  int taps;
  const int* index;     // [taps]
  const float* weight;  // [taps]
};

// Computes row y of the result, [width, classes], in which the columns are not
// yet resized.
void ResizeRow(const SegmentationArgmaxArgs& args, const ResizeTaps& rows,
               int y, float* row) {
  const int64_t count = int64_t{args.width} * args.classes;
  for (int64_t i = 0; i < count; ++i) {
    row[i] = 0;
    for (int t = 0; t < rows.count; ++t) {
      const int tap = y * rows.count + t;
      row[i] += rows.weight[tap] * args.logits[rows.index[tap] * count + i];
    }
  }
}

uint8_t Confidence(const Pixel& pixel, float best) {
  float sum = 0;
  for (int k = 0; k < pixel.classes; ++k) sum += std::exp(pixel[k] - best);
  return sum >= 1 ? static_cast<uint8_t>(255.0f / sum + 0.5f) : 0;
}

}  // namespace

void SegmentationArgmaxScalar(const SegmentationArgmaxArgs& args,
                              const ResizeTaps& rows, const ResizeTaps& columns,
                              float* row) {
  for (int y = args.row_begin; y < args.row_end; ++y) {
    ResizeRow(args, rows, y, row);
    for (int x = 0; x < args.out_width; ++x) {
      const Pixel pixel = {row, args.classes, columns.count,
                           &columns.index[x * columns.count],
                           &columns.weight[x * columns.count]};
      int label = 0;
      float best = -std::numeric_limits<float>::infinity();
      for (int k = 0; k < args.classes; ++k) {
        const float value = pixel[k];
        if (value > best) {
          best = value;
          label = k;
        }
      }
      const int64_t place = int64_t{y} * args.out_width + x;
      args.labels[place] = static_cast<uint16_t>(label);
      if (args.confidence != nullptr) {
        args.confidence[place] = Confidence(pixel, best);
      }
      if (args.areas != nullptr) ++args.areas[label];
    }
  }
}

void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args, CpuIsa isa) {
  SegmentationArgmaxCpu(
      args, ComposeResizes(args.height, args.input_height, args.out_height),
      ComposeResizes(args.width, args.input_width, args.out_width), isa);
}

void SegmentationArgmaxCpu(const SegmentationArgmaxArgs& args,
                           const ResizeTaps& rows, const ResizeTaps& columns,
                           CpuIsa isa) {
  std::vector<float> row(int64_t{args.width} * args.classes +
                         kSegmentationRowPadding);
  switch (isa) {
    case CpuIsa::kScalar:
      return SegmentationArgmaxScalar(args, rows, columns, row.data());
    case CpuIsa::kAvx2:
      return SegmentationArgmaxAvx2(args, rows, columns, row.data());
    case CpuIsa::kAvx512:
      return SegmentationArgmaxAvx512(args, rows, columns, row.data());
  }
}

}  // namespace sfmamba::kernels
