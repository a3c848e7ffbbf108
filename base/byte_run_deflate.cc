#include "base/byte_run_deflate.h"

#include <algorithm>

namespace sfmamba::base {
namespace {

using Code = ByteRunDeflate::Code;
using Codes = ByteRunDeflate::Codes;

constexpr int kSymbols = ByteRunDeflate::kSymbols;
constexpr int kRunSymbols = 286;  // The last two mean nothing.
constexpr int kEndOfBlock = 256;
constexpr int kFirstLength = 257;
constexpr int kLongestSymbol = 285;
constexpr int kShortest = 3, kLongest = 258;  // Matches.
constexpr uint32_t kAdlerModulus = 65521;

using Lengths = std::array<uint8_t, kSymbols>;

// RFC 1951, 3.2.6.
constexpr Lengths FixedLengths() {
  Lengths lengths = {};
  for (int i = 0; i < kSymbols; ++i) {
    lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  }
  return lengths;
}

// The code for long runs. In units of 1/4096, its words are used up: 1024 + 512
// + 128 + 14 * 64 + 12 * 64 + 16 * 32 + 15 * 2 + 226.
constexpr Lengths RunLengths() {
  Lengths lengths = {};
  for (int i = 0; i < kRunSymbols; ++i) {
    lengths[i] = i >= 273 ? 6 : i >= kFirstLength ? 7 : 12;
  }
  for (int bit = 0; bit < 8; ++bit) {
    lengths[1 << bit] = 6;
    lengths[256 - (1 << bit)] = 6;
  }
  lengths[0] = 3;
  lengths[2] = 5;  // Also the filter of each row.
  lengths[kLongestSymbol] = 2;
  int rare = 15;
  for (int i = 3; rare > 0; ++i) {
    if (lengths[i] != 12) continue;
    lengths[i] = 11;
    --rare;
  }
  return lengths;
}

// RFC 1951, 3.2.2. Words are read from their highest bit on, so they are
// turned round.
constexpr Codes CodesOf(const Lengths& lengths) {
  Codes codes = {};
  int word = 0;
  for (int length = 1; length <= 15; ++length, word <<= 1) {
    for (int i = 0; i < kSymbols; ++i) {
      if (lengths[i] != length) continue;
      int bits = 0;
      for (int b = 0; b < length; ++b)
        bits |= (word >> b & 1) << (length - 1 - b);
      codes[i].bits = bits;
      codes[i].length = length;
      ++word;
    }
  }
  return codes;
}

constexpr Lengths kRunLengths = RunLengths();
constexpr Codes kFixedCodes = CodesOf(FixedLengths());
constexpr Codes kRunCodes = CodesOf(kRunLengths);

// RFC 1951, 3.2.5: the symbols of match lengths and their extra bits.
struct MatchLength {
  uint16_t symbol = 0;
  uint8_t extra = 0;       // The value,
  uint8_t extra_bits = 0;  // and how many bits it has.
};

constexpr std::array<MatchLength, kLongest + 1> MatchLengths() {
  std::array<MatchLength, kLongest + 1> matches = {};
  int length = kShortest;
  for (int symbol = kFirstLength; symbol < kLongestSymbol; ++symbol) {
    const int index = symbol - kFirstLength;
    const int bits = index < 8 ? 0 : index / 4 - 1;
    for (int extra = 0; extra < 1 << bits && length < kLongest; ++extra) {
      matches[length].symbol = symbol;
      matches[length].extra = extra;
      matches[length++].extra_bits = bits;
    }
  }
  matches[kLongest].symbol = kLongestSymbol;
  return matches;
}

constexpr std::array<MatchLength, kLongest + 1> kMatchLengths = MatchLengths();

}  // namespace

ByteRunDeflate::ByteRunDeflate(bool long_runs, std::string* stream)
    : codes_(long_runs ? kRunCodes : kFixedCodes),
      distance_bits_(long_runs ? 1 : 5),
      stream_(*stream) {
  Write(0x0178, 16);  // The zlib header: deflate, fastest.
  if (!long_runs) {
    Write(1 | 1 << 1, 3);  // The last block, with the fixed code.
    return;
  }
  // The last block, with its code: RFC 1951, 3.2.7. All symbols have lengths,
  // and so have two distances, of which the second is not used.
  Write(1 | 2 << 1, 3);
  Write(kRunSymbols - 257, 5);
  Write(2 - 1, 5);
  constexpr int kOrder[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                            11, 4,  12, 3, 13, 2, 14, 1, 15};
  // The code of the lengths themselves: words of one, three and five bits.
  Lengths own = {};
  own[12] = 1;
  for (const int length : {6, 7, 11}) own[length] = 3;
  for (const int length : {1, 2, 3, 5}) own[length] = 5;
  Write(18 - 4, 4);  // Up to 1.
  for (int i = 0; i < 18; ++i) Write(own[kOrder[i]], 3);
  const Codes codes = CodesOf(own);
  for (int i = 0; i < kRunSymbols; ++i) Write(codes[kRunLengths[i]]);
  for (int distance = 0; distance < 2; ++distance) Write(codes[1]);
}

void ByteRunDeflate::WriteRun() {
  if (count_ == 0) return;
  Write(codes_[value_]);
  WriteRepeats(count_ - 1);
  // RFC 1950: adler_low_ is the sum of the bytes, adler_high_ that of all
  // values of adler_low_.
  for (int64_t left = count_; left > 0;) {
    const uint64_t count = std::min<int64_t>(left, 1 << 20);
    const uint64_t sum = count * (count + 1) / 2 % kAdlerModulus;
    adler_high_ =
        (adler_high_ + count * adler_low_ + value_ * sum) % kAdlerModulus;
    adler_low_ = (adler_low_ + count * value_) % kAdlerModulus;
    left -= count;
  }
}

void ByteRunDeflate::WriteRepeats(int64_t count) {
  while (count >= kShortest) {
    int length = std::min<int64_t>(count, kLongest);
    // What is left is none or a match too.
    if (count > kLongest && count < kLongest + kShortest) {
      length = kLongest - kShortest;
    }
    const MatchLength& match = kMatchLengths[length];
    Write(codes_[match.symbol]);
    Write(match.extra, match.extra_bits + distance_bits_);  // Distance 1: 0.
    count -= length;
  }
  for (; count > 0; --count) Write(codes_[value_]);
}

void ByteRunDeflate::Drain() {
  const char bytes[] = {
      static_cast<char>(buffer_), static_cast<char>(buffer_ >> 8),
      static_cast<char>(buffer_ >> 16), static_cast<char>(buffer_ >> 24)};
  stream_.append(bytes, 4);
  buffer_ >>= 32;
  filled_ -= 32;
}

void ByteRunDeflate::Finish() {
  WriteRun();
  Write(codes_[kEndOfBlock]);
  for (; filled_ > 0; filled_ -= 8, buffer_ >>= 8) {
    stream_.push_back(static_cast<char>(buffer_));
  }
  const uint32_t adler = adler_high_ << 16 | adler_low_;
  for (const int shift : {24, 16, 8, 0}) {
    stream_.push_back(static_cast<char>(adler >> shift));
  }
}

}  // namespace sfmamba::base
