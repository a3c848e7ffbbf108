#ifndef SFMAMBA_SERVER_KSERVE_TENSOR_ELEMENTS_H_
#define SFMAMBA_SERVER_KSERVE_TENSOR_ELEMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/call/wire/wire_cursor.h"
#include "server/image/image_source.h"

namespace sfmamba::kserve {

// The type of an input: BYTES, whose elements are files, or numbers.
struct ElementType {
  absl::string_view name;  // "FP32".
  int bytes = 0;           // Size of an element; 0: BYTES.
  image::InputTensor::Type type = image::InputTensor::Type::kFloat32;

  bool is_bytes() const { return bytes == 0; }
};

// INVALID_ARGUMENT, without a field, unless it is FP32, FP16, BF16, UINT8 or
// BYTES.
absl::StatusOr<ElementType> ParseElementType(absl::string_view datatype);

// The images of an input of this type and shape: [N], [N, 1] for files, and
// [N, 3, H, W] for numbers. INVALID_ARGUMENT, without a field, if the shape is
// another, or if it stands for more bytes than can be counted.
absl::StatusOr<int64_t> CountImages(const ElementType& type,
                                    absl::Span<const int64_t> shape);

// The bytes of one image of numbers; `shape` has passed CountImages().
int64_t BytesOfImage(const ElementType& type, absl::Span<const int64_t> shape);

// The readers below say where the elements of `images` images lie in a message
// of these parts, or what they are. Their errors are INVALID_ARGUMENT without a
// field; what the message says of lengths is checked before it is used.

// Raw numbers, which are all of `raw`: an extent for each image.
absl::StatusOr<std::vector<call::WireExtent>> SplitRawNumbers(
    const ElementType& type, absl::Span<const int64_t> shape, int images,
    const call::WireExtent& raw);

// Raw files: each is four bytes of its length, little-endian, and its bytes.
absl::StatusOr<std::vector<call::WireExtent>> SplitRawFiles(
    absl::Span<const absl::string_view> parts, int images,
    const call::WireExtent& raw);

// An InferTensorContents with files in `bytes_contents`.
absl::StatusOr<std::vector<call::WireExtent>> SplitTypedFiles(
    absl::Span<const absl::string_view> parts, int images,
    const call::WireExtent& contents);

// An InferTensorContents with exactly `count` elements of FP32 or UINT8, which
// are written to `to` as raw bytes.
absl::Status ReadTypedNumbers(absl::Span<const absl::string_view> parts,
                              const ElementType& type, int64_t count,
                              const call::WireExtent& contents, uint8_t* to);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_TENSOR_ELEMENTS_H_
