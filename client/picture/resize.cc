#include "client/picture/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/bicubic_filter.h"
#include "client/picture/picture_reader.h"

namespace sfmamba::client {
namespace {

constexpr int kMaxSide = 4096;  // A message cannot hold a larger tensor.

using base::BicubicFilter;
using Taps = BicubicFilter::Taps;

// Returns the weights of `size` outputs, of which `begin` is the first.
std::vector<Taps> MakeTaps(BicubicFilter filter, int64_t begin, int size) {
  std::vector<Taps> taps(size);
  for (int i = 0; i < size; ++i) filter.TapsOf(begin + i, &taps[i]);
  return taps;
}

// Resizes each row of `picture` and transposes the result.
Picture ResizeRows(const Picture& picture, const std::vector<Taps>& outputs) {
  Picture turned;
  turned.width = picture.height;
  turned.height = static_cast<int>(outputs.size());
  turned.data.reserve(size_t{3} * turned.width * turned.height);
  for (const Taps& taps : outputs) {
    for (int y = 0; y < picture.height; ++y) {
      const uint8_t* in =
          &picture.data[3 * (size_t{1} * y * picture.width + taps.first)];
      int32_t sum[3];
      std::fill_n(sum, 3, 1 << (BicubicFilter::kFractionBits - 1));
      for (const int32_t weight : taps.weights) {
        for (int32_t& channel : sum) channel += weight * *in++;
      }
      for (const int32_t channel : sum) {
        turned.data.push_back(
            std::clamp(channel >> BicubicFilter::kFractionBits, 0, 255));
      }
    }
  }
  return turned;
}

absl::Status CheckModel(const v1::Model& model) {
  const v1::InputSpec& input = model.input();
  const bool known =
      input.resize() == "center_crop" || input.resize() == "stretch";
  if (model.task() == v1::Model::CLASSIFICATION && known &&
      input.buckets_size() == 1) {
    const int side = input.buckets(0).width();
    if (side == input.buckets(0).height() && side >= 1 && side <= kMaxSide &&
        side <= input.resize_size()) {
      return absl::OkStatus();
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("a picture is resized for a classifier that is READY, not "
                   "for ",
                   model.name()));
}

// Returns the pixels of a square as planes, [3, side, side].
v1::Image ToTensor(const Picture& square) {
  v1::Image image;
  v1::Tensor& tensor = *image.mutable_tensor();
  tensor.set_data_type(v1::Tensor::UINT8);
  for (const int side : {3, square.height, square.width}) {
    tensor.add_shape(side);
  }
  std::string& data = *tensor.mutable_data();
  data.reserve(square.data.size());
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t i = channel; i < square.data.size(); i += 3) {
      data.push_back(static_cast<char>(square.data[i]));
    }
  }
  return image;
}

}  // namespace

absl::StatusOr<v1::Image> ResizeFor(const v1::Model& model,
                                    absl::string_view bytes) {
  const absl::Status status = CheckModel(model);
  if (!status.ok()) return status;
  const v1::InputSpec& input = model.input();
  const absl::StatusOr<Picture> picture =
      ReadPicture(bytes, input.resize_size());
  if (!picture.ok()) return picture.status();
  const int side = input.buckets(0).width();
  const int short_side = std::min(picture->width, picture->height);
  const auto taps = [&](int length) {
    const int64_t resized =
        input.resize() == "stretch"
            ? input.resize_size()
            : int64_t{input.resize_size()} * length / short_side;
    // Halves are rounded to the even integer.
    const double begin = std::nearbyint((resized - side) / 2.0);
    return MakeTaps(BicubicFilter(length, resized), static_cast<int64_t>(begin),
                    side);
  };
  const Picture narrow = ResizeRows(*picture, taps(picture->width));
  return ToTensor(ResizeRows(narrow, taps(picture->height)));
}

}  // namespace sfmamba::client
