#ifndef SFMAMBA_TESTS_FUZZ_SLICED_MESSAGE_H_
#define SFMAMBA_TESTS_FUZZ_SLICED_MESSAGE_H_

#include <algorithm>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "tests/fuzz/check.h"

namespace sfmamba {

// Reads up to five cut positions from the input. Their unit is 1/256 of the
// message's length.
inline std::vector<int> TakeCuts(Input* input) {
  std::vector<int> cuts(input->Below(6));
  for (int& cut : cuts) cut = input->Below(256);
  return cuts;
}

// Returns `message` in slices that end at `cuts`, as gRPC receives a message.
inline grpc::ByteBuffer InSlices(absl::string_view message,
                                 std::vector<int> cuts) {
  cuts.push_back(256);
  std::sort(cuts.begin(), cuts.end());
  std::vector<grpc::Slice> slices;
  size_t begin = 0;
  for (const int cut : cuts) {
    const size_t end = message.size() * cut / 256;
    slices.emplace_back(message.data() + begin, end - begin);
    begin = end;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_FUZZ_SLICED_MESSAGE_H_
