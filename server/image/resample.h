#ifndef SFMAMBA_SERVER_IMAGE_RESAMPLE_H_
#define SFMAMBA_SERVER_IMAGE_RESAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/decode_watch.h"
#include "kernels/pixels/fixed_point_resize.h"

namespace sfmamba::image {

// The new size of a picture, and the window of it to compute.
struct ResizeWindow {
  int width = 0;  // The whole picture's new size, in pixels.
  int height = 0;
  int left = 0;  // The window's corner and size in the new picture.
  int top = 0;
  int columns = 0;
  int rows = 0;
};

// Resizes `rgb` [height, width, 3] like Pillow's bicubic filter, bit for bit.
// Returns the window [rows, columns, 3]. Computes only what the window needs,
// so a large size with a small window is cheap. Checks `watch` every few rows
// and returns its status once it has expired. Rows begin `stride` bytes apart,
// or are packed if `stride` is 0. Source: docs/network.md, "Preprocessing";
// Pillow's published resampling.
absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch = base::DecodeWatch(), size_t stride = 0);

// ResizeBicubic() for a decoder that writes one row after another. The whole
// picture is never in memory. Rows are resized while they are in the CPU cache.
//
// Thread-compatible.
class RowResizer {
 public:
  RowResizer(int width, int height, const ResizeWindow& window);

  // Returns where to write row `y` of the picture. Call it for each row from
  // the top, once the row before is written.
  uint8_t* Row(int y);
  // Takes the whole picture like ResizeBicubic(), in place of calls of Row().
  absl::Status TakeAll(const uint8_t* rgb, size_t stride,
                       const base::DecodeWatch& watch);
  // Returns the window once all rows are written or taken.
  std::vector<uint8_t> Finish();
  // The time spent resizing.
  absl::Duration spent() const { return spent_; }

 private:
  static constexpr int kAtOnce = kernels::ResizeRowsArgs::kRowsAtOnce;
  // The number of rows between clock readings. One reading per row is too slow.
  static constexpr int kRows = 4 * kAtOnce;
  // Keeps rows off multiples of 16 and 32 bytes. libjpeg-turbo's vector
  // instructions write aligned rows past the CPU cache, from where they would
  // have to be read again.
  static constexpr size_t kUnaligned = 8;

  // Row `output` of the window uses the picture's rows [FirstOf(), EndOf()).
  int FirstOf(int output) const;
  int EndOf(int output) const;
  uint8_t* RowAt(int slot) { return &rows_[kUnaligned + slot * stride_]; }
  void TakeRows();
  // Takes the rows from taken_ on. Rows beyond end_ may have any content.
  void Take(const uint8_t* const* rows);  // [kAtOnce]
  void Narrow(const uint8_t* const* rows);
  void Combine(int output);

  const int width_, height_;  // The picture's size.
  const ResizeWindow window_;
  const size_t row_bytes_;  // Bytes in a row of the window.
  // Unset if the side keeps its size.
  std::optional<kernels::FixedPointTaps> across_, down_;
  const int begin_, end_;      // The picture's rows that the window uses.
  const size_t stride_;        // A multiple of 16.
  std::vector<uint8_t> rows_;  // [kRows, stride_] from kUnaligned on.
  const int slots_;
  // [slots_, row_bytes_]: the last rows, reduced to the window's columns. Row y
  // of the picture is at y % slots_.
  std::vector<uint8_t> narrow_;
  int taken_;                    // Rows before it are in narrow_.
  int made_ = 0;                 // Rows of the window made so far.
  std::vector<uint8_t> result_;  // [rows, columns, 3]
  absl::Duration spent_;
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_RESAMPLE_H_
