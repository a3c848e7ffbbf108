#ifndef SFMAMBA_SERVER_KSERVE_INFER_WIRE_H_
#define SFMAMBA_SERVER_KSERVE_INFER_WIRE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/rpc/wire/wire_cursor.h"

namespace sfmamba::kserve {

// A ModelInferRequest, looked at before protobuf parses it, so that no message
// takes more memory than it has bytes. Tensors' elements stay where they are.

struct InferWire {
  // Numbers of these fields. Counting ends at kMaxCounted.
  int inputs = 0;
  int outputs = 0;
  int raw_inputs = 0;
  // Position of the first input's `contents` and how often they were given, and
  // position of the first raw_input_contents. A length of -1: it is missing.
  rpc::WireExtent contents = {0, -1};
  int contents_count = 0;
  rpc::WireExtent raw = {0, -1};
  // The part of the message that is parsed: no elements, the first input only,
  // and at most kMaxOutputs outputs.
  std::string rest;
};

constexpr int kMaxCounted = 1 << 16;
constexpr int kMaxOutputs = 16;
constexpr int64_t kMaxInferRestBytes = 64 << 10;

// Fills `wire` from a message that lies in `parts`, in one pass. Returns
// INVALID_ARGUMENT: MALFORMED_MESSAGE if these bytes are no message of the wire
// format, and INVALID_FIELD, naming the field, if it has too much beside its
// tensors' elements.
absl::Status WalkInferRequest(absl::Span<const absl::string_view> parts,
                              InferWire* wire);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_INFER_WIRE_H_
