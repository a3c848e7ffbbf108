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

// The size to which a picture is resized, and the window to compute. The window
// is a rectangle of the resized picture.
struct ResizeWindow {
  int width = 0;  // The whole picture's new size, in pixels.
  int height = 0;
  // The window's top left corner and its size, in pixels.
  int left = 0;
  int top = 0;
  int columns = 0;
  int rows = 0;
};

// Resizes the picture `rgb` [height, width, 3] like Pillow's bicubic filter,
// with identical results. Returns only the window [rows, columns, 3], and
// computes only the pixels that the window needs. The rows of `rgb` begin
// `stride` bytes apart. If `stride` is 0, the rows are contiguous. Checks
// `watch` every few rows. If the watch has expired, returns the watch's status.
// Source: docs/network.md, "Preprocessing"; Pillow's published resampling.
absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch = base::DecodeWatch(), size_t stride = 0);

// Does the same as ResizeBicubic() for a decoder that writes one row after
// another. The whole picture need not be in memory. Rows are resized while they
// are still in the CPU cache.
//
// Thread-compatible.
class RowResizer {
 public:
  RowResizer(int width, int height, const ResizeWindow& window);

  // Returns the address to which the caller must write row `y` of the picture.
  // Must be called for each row, from top to bottom. May be called only after
  // the previous row is written.
  uint8_t* Row(int y);
  // Resizes a picture that is completely in memory. ResizeBicubic() calls this
  // method instead of Row(). If `watch` expires, returns the status of `watch`.
  absl::Status TakeAll(const uint8_t* rgb, size_t stride,
                       const base::DecodeWatch& watch);
  // Returns the window (the requested rectangle of the resized picture). May be
  // called only once, after all rows were written or TakeAll() returned OK.
  std::vector<uint8_t> Finish();
  // Returns the time spent resizing rows that were written through Row().
  absl::Duration spent() const { return spent_; }

 private:
  static constexpr int kAtOnce = kernels::ResizeRowsArgs::kRowsAtOnce;
  // The number of picture rows that are buffered and then resized together. The
  // clock is read once for these rows, because reading it for each row would be
  // too slow.
  static constexpr int kRows = 4 * kAtOnce;
  // The first row in rows_ starts after this many unused bytes. As a result, no
  // row starts at a multiple of 16 or 32 bytes. libjpeg-turbo would write a row
  // at such an address directly to memory and not to the CPU cache. Resizing
  // would then have to read the row from memory.
  static constexpr size_t kUnaligned = 8;

  // Row `output` of the window is computed from the picture's rows
  // [FirstOf(output), EndOf(output)).
  int FirstOf(int output) const;
  int EndOf(int output) const;
  uint8_t* RowAt(int slot) { return &rows_[kUnaligned + slot * stride_]; }
  void TakeRows();
  // Resizes the next kAtOnce rows of the picture, starting with row taken_.
  // `rows` contains the addresses of these kAtOnce rows. If fewer rows remain
  // before row end_, the last addresses in `rows` must still be readable, but
  // their content may be anything. The window does not use this content.
  void Take(const uint8_t* const* rows);
  void Narrow(const uint8_t* const* rows);
  void Combine(int output);

  const int width_, height_;  // The picture's size.
  const ResizeWindow window_;
  const size_t row_bytes_;  // The size in bytes of a row of the window.
  // The weights for resizing the width and the height. If a side keeps its
  // size, its weights are nullopt.
  std::optional<kernels::FixedPointTaps> across_, down_;
  // The window is computed from the picture's rows [begin_, end_).
  const int begin_, end_;
  // The distance between two rows in rows_. It is a multiple of 16 bytes.
  const size_t stride_;
  // A buffer for kRows rows of the picture. The shape is [kRows, stride_]. The
  // first row starts after kUnaligned bytes.
  std::vector<uint8_t> rows_;
  const int slots_;
  // The last slots_ rows of the picture, already resized to the window's
  // columns. The shape is [slots_, row_bytes_]. Row y of the picture is at
  // index y % slots_.
  std::vector<uint8_t> narrow_;
  int taken_;                    // The next row of the picture to resize.
  int made_ = 0;                 // The number of finished rows of the window.
  std::vector<uint8_t> result_;  // [rows, columns, 3]
  absl::Duration spent_;
};

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_RESAMPLE_H_
