#ifndef SFMAMBA_SERVER_API_KSERVE_TENSOR_ELEMENTS_H_
#define SFMAMBA_SERVER_API_KSERVE_TENSOR_ELEMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/call/wire/wire_cursor.h"
#include "server/image/image_source.h"

namespace sfmamba::kserve {

// The element type of an input. An element of type BYTES is an encoded file.
// All other types are numbers.
struct ElementType {
  absl::string_view name;  // The name of the type, such as "FP32".
  int bytes = 0;           // The size of an element in bytes, or 0 for BYTES.
  image::InputTensor::Type type = image::InputTensor::Type::kFloat32;

  bool is_bytes() const { return bytes == 0; }
};

// Parses an element type. If the type is not FP32, FP16, BF16, UINT8 or BYTES,
// returns INVALID_ARGUMENT. The error names no field.
absl::StatusOr<ElementType> ParseElementType(absl::string_view datatype);

// Returns the number of images in an input. The shape must be [N] or [N, 1] for
// files and [N, 3, H, W] for numbers. If the shape is wrong or its size in
// bytes overflows, returns INVALID_ARGUMENT. The error names no field.
absl::StatusOr<int64_t> CountImages(const ElementType& type,
                                    absl::Span<const int64_t> shape);

// Returns the number of bytes of one image of a numeric tensor. CountImages()
// must have accepted `shape`.
int64_t BytesOfImage(const ElementType& type, absl::Span<const int64_t> shape);

// An extent is a range of bytes in a message. The functions below find or read
// the elements of an input in a message. If elements are missing, malformed or
// of the wrong type, the functions return INVALID_ARGUMENT. The error names no
// field.

// Splits `raw`, the extent of the numbers in raw_input_contents. Returns one
// extent for each image.
absl::StatusOr<std::vector<call::WireExtent>> SplitRawNumbers(
    const ElementType& type, absl::Span<const int64_t> shape, int images,
    const call::WireExtent& raw);

// Splits `raw`, the extent of the files in raw_input_contents. Returns one
// extent for each file. In the message, the length of a file precedes the file
// as a 4-byte little-endian number.
absl::StatusOr<std::vector<call::WireExtent>> SplitRawFiles(
    absl::Span<const absl::string_view> parts, int images,
    const call::WireExtent& raw);

// Each element of the field `bytes_contents` of an InferTensorContents is an
// image file. Returns the extent (position and size in the message) of each
// file.
absl::StatusOr<std::vector<call::WireExtent>> SplitTypedFiles(
    absl::Span<const absl::string_view> parts, int images,
    const call::WireExtent& contents);

// Copies the FP32 or UINT8 elements of an InferTensorContents to `to` as raw
// bytes. Returns INVALID_ARGUMENT if the number of elements is not `count`.
absl::Status ReadTypedNumbers(absl::Span<const absl::string_view> parts,
                              const ElementType& type, int64_t count,
                              const call::WireExtent& contents, uint8_t* to);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_TENSOR_ELEMENTS_H_
