#include "base/mask_png_encoder.h"

#include <cstddef>
#include <utility>

#include "absl/strings/string_view.h"
#include "zlib.h"

namespace sfmamba::base {
namespace {

// Filters of a row: as it is, or as differences from the one above it.
constexpr uint8_t kPlain = 0, kUp = 2;
// Files of more bytes, before they are compressed, have long runs.
constexpr int64_t kLongRuns = 4096;

void AppendNumber(uint32_t number, std::string* file) {
  for (const int shift : {24, 16, 8, 0}) {
    file->push_back(static_cast<char>(number >> shift));
  }
}

// Begins a chunk whose length EndChunk() fills in; returns where it is.
size_t BeginChunk(absl::string_view type, std::string* file) {
  const size_t begin = file->size();
  AppendNumber(0, file);
  file->append(type.data(), type.size());
  return begin;
}

void EndChunk(size_t begin, std::string* file) {
  const size_t type = begin + 4, length = file->size() - type - 4;
  for (int i = 0; i < 4; ++i) {
    (*file)[begin + i] = static_cast<char>(length >> (24 - 8 * i));
  }
  AppendNumber(crc32_z(0, reinterpret_cast<const Bytef*>(file->data()) + type,
                       length + 4),
               file);
}

// The file up to the compressed data.
std::string FileHeader(int width, int height) {
  std::string file("\x89PNG\r\n\x1a\n", 8);
  const size_t header = BeginChunk("IHDR", &file);
  AppendNumber(width, &file);
  AppendNumber(height, &file);
  // Bit depth 1, grey, deflate, the usual filters, not interlaced.
  file.append({1, 0, 0, 0, 0});
  EndChunk(header, &file);
  return file;
}

}  // namespace

MaskPngEncoder::MaskPngEncoder(int width, int height)
    : width_(width),
      height_(height),
      stride_((width + 7) / 8),
      file_(FileHeader(width, height)),
      data_(BeginChunk("IDAT", &file_)),
      deflate_(int64_t{stride_} * height > kLongRuns, &file_) {}

void MaskPngEncoder::AddEmptyRows(int rows) {
  deflate_.Add(kPlain, int64_t{rows} * (1 + stride_));
  if (rows > 0) above_.clear();
  rows_ += rows;
}

void MaskPngEncoder::AddRow(absl::Span<const int> edges) {
  if (edges.empty()) return AddEmptyRows(1);
  deflate_.Add(kUp, 1);
  next_ = difference_ = 0;
  // Between an odd number of edges and the next one of either row, the rows
  // differ.
  const int* own = edges.begin();
  const int* above = above_.data();
  const int* const above_end = above + above_.size();
  bool set = false, set_above = false;
  int begin = 0;
  while (own != edges.end() || above != above_end) {
    const bool is_own =
        above == above_end || (own != edges.end() && *own <= *above);
    const int at = is_own ? *own++ : *above++;
    if (set != set_above && begin < at) Change(begin, at, set);
    begin = at;
    (is_own ? set : set_above) ^= true;
  }
  if (difference_ != 0) AddByte(pending_, difference_);
  deflate_.Add(0, stride_ - next_);
  above_.assign(edges.begin(), edges.end());
  ++rows_;
}

void MaskPngEncoder::Change(int begin, int end, bool set) {
  const int first = begin / 8, last = (end - 1) / 8;
  const int first_bits = 0xff >> begin % 8;
  const int last_bits = 0xff << (7 - (end - 1) % 8) & 0xff;
  const int sign = set ? 1 : -1;
  if (difference_ != 0 && pending_ != first) {
    AddByte(pending_, difference_);
    difference_ = 0;
  }
  pending_ = first;
  if (first == last) {
    difference_ += sign * (first_bits & last_bits);
    return;
  }
  AddByte(first, difference_ + sign * first_bits);
  deflate_.Add(static_cast<uint8_t>(sign * 0xff), last - first - 1);
  next_ = last;
  pending_ = last;
  difference_ = sign * last_bits;
}

void MaskPngEncoder::AddByte(int at, int difference) {
  deflate_.Add(0, at - next_);
  deflate_.Add(static_cast<uint8_t>(difference), 1);
  next_ = at + 1;
}

std::string MaskPngEncoder::Take() {
  deflate_.Finish();
  EndChunk(data_, &file_);
  EndChunk(BeginChunk("IEND", &file_), &file_);
  return std::move(file_);
}

}  // namespace sfmamba::base
