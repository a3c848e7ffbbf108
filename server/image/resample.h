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

// A picture's new size, and the part of it that is wanted.
struct ResizeWindow {
  int width = 0;  // The whole picture's new size, in pixels.
  int height = 0;
  int left = 0;  // The window's corner and size in the new picture.
  int top = 0;
  int columns = 0;
  int rows = 0;
};

// Resizes `rgb` [height, width, 3] as Pillow's bicubic filter does, bit for
// bit, and returns the window: [rows, columns, 3]. Only what the window needs
// is computed, so a large size with a small window is cheap. `watch` is asked
// after every few rows; once it has expired, the result is its status. Rows
// begin `stride` bytes apart; 0: they are tight. Source: docs/network.md,
// "Preprocessing"; Pillow's published resampling.
absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch = base::DecodeWatch(), size_t stride = 0);

// ResizeBicubic() for a decoder that writes one row after another: the picture
// is never in memory as a whole, and rows are resized while they are in the
// cache.
//
// Thread-compatible.
class RowResizer {
 public:
  RowResizer(int width, int height, const ResizeWindow& window);

  // Where row y of the picture is to be written. To be called for each row from
  // the top; the one before is written then.
  uint8_t* Row(int y);
  // In place of Row() of each row: takes the picture as ResizeBicubic() does.
  absl::Status TakeAll(const uint8_t* rgb, size_t stride,
                       const base::DecodeWatch& watch);
  // Returns the window once all rows are written or taken.
  std::vector<uint8_t> Finish();
  // The time that was spent resizing.
  absl::Duration spent() const { return spent_; }

 private:
  static constexpr int kAtOnce = kernels::ResizeRowsArgs::kRowsAtOnce;
  // Some, so that the clock is not asked too often.
  static constexpr int kRows = 4 * kAtOnce;
  // libjpeg-turbo's vector instructions write rows that begin at a multiple of
  // 16 or 32 bytes past the cache, from where they would have to be read again.
  static constexpr size_t kUnaligned = 8;

  // The rows of the picture that a row of the window is made of.
  int FirstOf(int output) const;
  int EndOf(int output) const;
  uint8_t* RowAt(int slot) { return &rows_[kUnaligned + slot * stride_]; }
  void TakeRows();
  // Takes the rows from taken_ on; those beyond end_ may be anything.
  void Take(const uint8_t* const* rows);  // [kAtOnce]
  void Narrow(const uint8_t* const* rows);
  void Combine(int output);

  const int width_, height_;  // The picture's.
  const ResizeWindow window_;
  const size_t row_bytes_;  // Bytes in a row of the window.
  // Unset if the side stays.
  std::optional<kernels::FixedPointTaps> across_, down_;
  const int begin_, end_;      // The rows that the window is made of.
  const size_t stride_;        // A multiple of 16.
  std::vector<uint8_t> rows_;  // [kRows, stride_] from kUnaligned on.
  const int slots_;
  // [slots_, row_bytes_]: the last rows with the window's columns. Row y of the
  // picture is in y % slots_.
  std::vector<uint8_t> narrow_;
  int taken_;                    // Rows up to it are narrow.
  int made_ = 0;                 // Rows of the window.
  std::vector<uint8_t> result_;  // [rows, columns, 3]
  absl::Duration spent_;
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_RESAMPLE_H_
