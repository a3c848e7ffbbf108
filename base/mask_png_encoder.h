#ifndef SFMAMBA_BASE_MASK_PNG_ENCODER_H_
#define SFMAMBA_BASE_MASK_PNG_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/byte_run_deflate.h"

namespace sfmamba::base {

// Encodes a 1-bit grey PNG whose rows are told as edges. Its time depends on
// the edges, not on the pixels: a row is written as its differences from the
// one above it. Thread-compatible.
class MaskPngEncoder {
 public:
  // The sides are positive.
  MaskPngEncoder(int width, int height);

  // Adds the next row: the pixels from the first edge up to the second are set,
  // those from the third up to the fourth, and so on. The edges are ascending,
  // an even number, within 0 and the width.
  void AddRow(absl::Span<const int> edges);
  // Adds the next `rows` rows, in which no pixel is set.
  void AddEmptyRows(int rows);

  bool done() const { return rows_ == height_; }  // Whether all rows are added.
  int64_t bytes() const { return file_.size(); }  // Encoded so far.
  std::string Take();  // The file; once, when done().

 private:
  // The bits of pixels [begin, end), which differ from the row above, become
  // set or unset.
  void Change(int begin, int end, bool set);
  void AddByte(int at, int difference);

  const int width_;
  const int height_;
  const int stride_;  // Bytes of a row.
  std::string file_;
  size_t data_ = 0;  // Where the compressed data begin in file_.
  ByteRunDeflate deflate_;
  std::vector<int> above_;  // The edges of the row above.
  int rows_ = 0;            // Added.
  // In the row that is being added: the byte that is next to be told, and one
  // behind it that is not told yet, because it may change more than once.
  int next_ = 0;
  int pending_ = 0;
  int difference_ = 0;  // Of that byte; 0 if there is none.
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_MASK_PNG_ENCODER_H_
