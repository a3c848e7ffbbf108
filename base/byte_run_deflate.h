#ifndef SFMAMBA_BASE_BYTE_RUN_DEFLATE_H_
#define SFMAMBA_BASE_BYTE_RUN_DEFLATE_H_

#include <array>
#include <cstdint>
#include <string>

namespace sfmamba::base {

// Compresses bytes that are told as runs of equal bytes into a zlib stream (RFC
// 1950 and 1951). Its time depends on the runs, not on the bytes, and it knows
// no other repetitions than runs.
//
// The Huffman code is fixed: that of RFC 1951, or one for long runs of zeros
// between differences of neighbouring 1-bit rows, which are powers of two or
// their negatives.
//
// Thread-compatible.
class ByteRunDeflate {
 public:
  // Appends to `stream`, which outlives it. `long_runs` chooses the second
  // code, whose description takes 60 bytes.
  ByteRunDeflate(bool long_runs, std::string* stream);
  ByteRunDeflate(const ByteRunDeflate&) = delete;
  ByteRunDeflate& operator=(const ByteRunDeflate&) = delete;

  // Adds `count` bytes of `value`.
  void Add(uint8_t value, int64_t count) {
    if (value == value_) {
      count_ += count;
      return;
    }
    if (count == 0) return;
    WriteRun();
    value_ = value;
    count_ = count;
  }

  // Ends the stream; once, after the last byte.
  void Finish();

  // Symbols of RFC 1951 and the bits that stand for them, the first one lowest.
  static constexpr int kSymbols = 288;
  struct Code {
    uint16_t bits = 0;
    uint8_t length = 0;
  };
  using Codes = std::array<Code, kSymbols>;

 private:
  void WriteRun();
  void WriteRepeats(int64_t count);
  void Write(uint32_t bits, int length) {
    buffer_ |= uint64_t{bits} << filled_;
    filled_ += length;
    if (filled_ >= 32) Drain();
  }
  void Write(const Code& code) { Write(code.bits, code.length); }
  void Drain();

  const Codes& codes_;
  const int distance_bits_;  // Of the code for distance 1.
  std::string& stream_;
  uint64_t buffer_ = 0;  // Bits that are not in stream_ yet,
  int filled_ = 0;       // and how many.
  uint8_t value_ = 0;    // The run that is not written yet.
  int64_t count_ = 0;
  uint32_t adler_low_ = 1, adler_high_ = 0;  // Adler-32 of what is written.
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_BYTE_RUN_DEFLATE_H_
