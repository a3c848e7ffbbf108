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

// The new size of a picture, and the window of the new picture to compute.
struct ResizeWindow {
  int width = 0;  // The whole picture's new size, in pixels.
  int height = 0;
  int left = 0;  // The window's corner and size in the resized picture.
  int top = 0;
  int columns = 0;
  int rows = 0;
};

// Resizes `rgb` [height, width, 3] like Pillow's bicubic filter, bit for bit.
// Returns the window [rows, columns, 3]. Computes only the pixels that the
// window needs. A small window of a very large picture is therefore cheap.
// Checks `watch` every few rows. If the watch has expired, returns the watch's
// status. Rows begin `stride` bytes apart, or are contiguous if `stride` is 0.
// Source: docs/network.md, "Preprocessing"; Pillow's published resampling.
absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch = base::DecodeWatch(), size_t stride = 0);

// Does the same as ResizeBicubic() for a decoder that writes one row after
// another. The whole picture is never in memory. Rows are resized while they
// are in the CPU cache.
//
// Thread-compatible.
class RowResizer {
 public:
  RowResizer(int width, int height, const ResizeWindow& window);

  // Returns the address to which the caller must write row `y` of the picture.
  // Must be called for each row from the top, after the previous row is
  // written.
  uint8_t* Row(int y);
  // Resizes the whole picture like ResizeBicubic(). Replaces all calls of
  // Row().
  absl::Status TakeAll(const uint8_t* rgb, size_t stride,
                       const base::DecodeWatch& watch);
  // Returns the window. Must be called after all rows are written, or after
  // TakeAll().
  std::vector<uint8_t> Finish();
  // Returns the time spent resizing.
  absl::Duration spent() const { return spent_; }

 private:
  static constexpr int kAtOnce = kernels::ResizeRowsArgs::kRowsAtOnce;
  // The number of rows between two readings of the clock. Reading it for each
  // row would be too slow.
  static constexpr int kRows = 4 * kAtOnce;
  // Prevents rows from starting at multiples of 16 and 32 bytes.
  // libjpeg-turbo's vector instructions write aligned rows past the CPU cache.
  // Resizing would then have to read the rows from memory.
  static constexpr size_t kUnaligned = 8;

  // Return the picture's rows [FirstOf(), EndOf()) that row `output` of the
  // window uses.
  int FirstOf(int output) const;
  int EndOf(int output) const;
  uint8_t* RowAt(int slot) { return &rows_[kUnaligned + slot * stride_]; }
  void TakeRows();
  // Processes the next rows, from row taken_ on. Rows beyond end_ may have any
  // content.
  void Take(const uint8_t* const* rows);  // [kAtOnce]
  void Narrow(const uint8_t* const* rows);
  void Combine(int output);

  const int width_, height_;  // The picture's size.
  const ResizeWindow window_;
  const size_t row_bytes_;  // Bytes in a row of the window.
  // nullopt if the side keeps its size.
  std::optional<kernels::FixedPointTaps> across_, down_;
  const int begin_, end_;      // The picture's rows that the window uses.
  const size_t stride_;        // A multiple of 16.
  std::vector<uint8_t> rows_;  // [kRows, stride_] from kUnaligned on.
  const int slots_;
  // The last rows, reduced to the window's columns: [slots_, row_bytes_]. Row y
  // of the picture is at index y % slots_.
  std::vector<uint8_t> narrow_;
  int taken_;                    // The previous rows are in narrow_.
  int made_ = 0;                 // The number of finished rows of the window.
  std::vector<uint8_t> result_;  // [rows, columns, 3]
  absl::Duration spent_;
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_RESAMPLE_H_
