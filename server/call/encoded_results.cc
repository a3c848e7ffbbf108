#include "server/call/encoded_results.h"

#include <utility>

#include "google/protobuf/io/coded_stream.h"

namespace sfmamba::call {
namespace {

// Returns the protobuf tag and the length that precede a result of `length`
// bytes.
std::string Head(size_t length) {
  using google::protobuf::io::CodedOutputStream;
  // Wire type 2 means that the field is length-delimited.
  constexpr uint32_t kTag = kResultsField << 3 | 2;
  uint8_t bytes[16];
  uint8_t* end = CodedOutputStream::WriteTagToArray(kTag, bytes);
  end = CodedOutputStream::WriteVarint64ToArray(length, end);
  return std::string(bytes, end);
}

}  // namespace

void EncodedResults::Start(int count) { results_.assign(count, Head(0)); }

int64_t EncodedResults::Set(int i, const Message& result) {
  results_[i] = Head(result.ByteSizeLong());
  result.AppendToString(&results_[i]);
  return results_[i].size();
}

int64_t EncodedResults::Bytes(const Message& rest) const {
  int64_t bytes = rest.ByteSizeLong();
  for (const std::string& result : results_) bytes += result.size();
  return bytes;
}

std::vector<std::string> EncodedResults::Take(const Message& rest) {
  std::vector<std::string> pieces = std::move(results_);
  pieces.push_back(rest.SerializeAsString());
  return pieces;
}

}  // namespace sfmamba::call
