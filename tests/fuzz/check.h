#ifndef SFMAMBA_TESTS_FUZZ_CHECK_H_
#define SFMAMBA_TESTS_FUZZ_CHECK_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba {

// Ends the process if `kept` is false. The fuzzer then reports `promise` and
// saves the input.
inline void Check(bool kept, const std::string& promise) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", promise.c_str());
  std::abort();
}

// Reads numbers from the beginning of a fuzzer's input. The remaining bytes are
// the data.
class Input {
 public:
  Input(const uint8_t* data, size_t size)
      : left_(reinterpret_cast<const char*>(data), size) {}

  // Returns a number from 0 to `limit` - 1, or 0 if no bytes remain. `limit` is
  // at most 256.
  int Below(int limit) {
    if (left_.empty()) return 0;
    const int value = static_cast<uint8_t>(left_.front()) % limit;
    left_.remove_prefix(1);
    return value;
  }
  absl::string_view bytes() const { return left_; }
  std::string text() const { return std::string(left_); }

 private:
  absl::string_view left_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_FUZZ_CHECK_H_
