#ifndef SFMAMBA_SERVER_CALL_ENCODED_RESULTS_H_
#define SFMAMBA_SERVER_CALL_ENCODED_RESULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/call/call.h"

namespace sfmamba::call {

// The number of the field `results`. All responses that have this field use
// this number.
inline constexpr int kResultsField = 1;

// Encodes a response in the protobuf wire format.
class EncodedResults final : public ResultSink {
 public:
  void Start(int count) override;
  int64_t Set(int i, const Message& result) override;
  int64_t Bytes(const Message& rest) const override;
  // Returns the encoded response as pieces that must be sent one after another.
  // `rest` is the response without its results. Must be called once, after all
  // other methods.
  std::vector<std::string> Take(const Message& rest);

 private:
  std::vector<std::string> results_;
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_ENCODED_RESULTS_H_
