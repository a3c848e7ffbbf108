#include "server/prediction/sliding_window.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::prediction {
namespace {

using image::PictureSize;

// The maximum side of a window in a request, in pixels. It is twice the maximum
// side of a model input, which is 2^13 pixels (see model/config_validation.cc).
// A window larger than the model input is reduced to the size of the input.
constexpr int kMaxSide = 1 << 14;

PictureSize WindowOf(const v1::SlidingWindow& slide,
                     const model::ModelConfig& model) {
  return {slide.height() > 0 ? slide.height() : model.short_side,
          slide.width() > 0 ? slide.width() : model.short_side};
}

int StrideOf(int stride, int window) {
  return stride > 0 ? stride : std::max(1, window * 2 / 3);
}

std::string SizeText(const PictureSize& size) {
  return absl::StrCat(size.width, "x", size.height);
}

// Returns a text that suggests a window and a stride. Enlarges the stride until
// there are at most `most` windows. Enlarges the window only if the stride
// would be larger than the window.
std::string Fitting(const SlideGrid& grid, int most) {
  const auto larger = [](int side) { return side + side / 8 + 1; };
  PictureSize window = grid.window(), stride = grid.stride();
  // The loop ends at the latest when a single window covers the picture.
  while (SlideGrid(grid.picture(), window, stride).windows() > most) {
    stride = {larger(stride.height), larger(stride.width)};
    window = {std::max(window.height, stride.height),
              std::max(window.width, stride.width)};
  }
  return absl::StrCat("a window of ", SizeText(window), " with a stride of ",
                      SizeText(stride));
}

}  // namespace

absl::Status ValidateSlide(const v1::SlidingWindow& slide,
                           const model::ModelConfig& model) {
  const PictureSize window = WindowOf(slide, model);
  absl::Status status =
      CheckRange("params.slide.width", slide.width(), kMaxSide);
  status.Update(CheckRange("params.slide.height", slide.height(), kMaxSide));
  status.Update(
      CheckRange("params.slide.stride_x", slide.stride_x(), window.width));
  status.Update(
      CheckRange("params.slide.stride_y", slide.stride_y(), window.height));
  return status;
}

SlideGrid GridOf(const v1::SlidingWindow& slide,
                 const model::ModelConfig& model, const PictureSize& input) {
  const PictureSize window = WindowOf(slide, model);
  return SlideGrid(input, window,
                   {StrideOf(slide.stride_y(), window.height),
                    StrideOf(slide.stride_x(), window.width)});
}

absl::Status DivideIntoWindows(const v1::SlidingWindow& slide,
                               const model::ModelConfig& model, int most,
                               ImageFacts* image) {
  const SlideGrid grid = GridOf(slide, model, image->input);
  if (grid.windows() > most) {
    return server::InvalidField(
        "", absl::StrCat("got ", grid.windows(), " windows of ",
                         SizeText(grid.window()), " over the input of ",
                         SizeText(image->input), ", expected at most ", most,
                         "; ", Fitting(grid, most), " would fit"));
  }
  const int64_t bytes_per_value =
      image->key.type == batching::ImageType::kUint8 ? 1 : sizeof(float);
  const PartFacts part = {{},
                          KeyOf(model, grid.window(), image->key.type),
                          3 * grid.window().pixels() * bytes_per_value};
  image->parts.assign(grid.windows(), part);
  for (int64_t i = 0; i < grid.windows(); ++i) {
    image->parts[i].region = grid.Region(i);
  }
  // Adds the memory of the windows to the memory of the input. The input stays
  // in memory until the last window has been cut out.
  image->parts_of_input = true;
  image->input_bytes += grid.windows() * part.input_bytes;
  return absl::OkStatus();
}

}  // namespace sfmamba::prediction
