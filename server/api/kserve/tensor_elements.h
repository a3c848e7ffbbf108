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

// The type of an input. The elements of BYTES are files. The others are
// numbers.
struct ElementType {
  absl::string_view name;  // "FP32".
  int bytes = 0;           // Size of an element; 0: BYTES.
  image::InputTensor::Type type = image::InputTensor::Type::kFloat32;

  bool is_bytes() const { return bytes == 0; }
};

// Returns INVALID_ARGUMENT, without a field, unless the type is FP32, FP16,
// BF16, UINT8 or BYTES.
absl::StatusOr<ElementType> ParseElementType(absl::string_view datatype);

// Returns how many images an input of this type and shape has. The shape of
// files is [N] or [N, 1], and the shape of numbers is [N, 3, H, W].
// INVALID_ARGUMENT, without a field, for other shapes, and if the shape stands
// for more bytes than can be counted.
absl::StatusOr<int64_t> CountImages(const ElementType& type,
                                    absl::Span<const int64_t> shape);

// Returns the bytes of one image of numbers. CountImages() has accepted
// `shape`.
int64_t BytesOfImage(const ElementType& type, absl::Span<const int64_t> shape);

// The functions below find or read the elements of `images` images in a message
// of these parts. Their errors are INVALID_ARGUMENT without a field. They check
// the lengths that a message states before they use them.

// Returns an extent for each image of raw numbers, which are all of `raw`.
absl::StatusOr<std::vector<call::WireExtent>> SplitRawNumbers(
    const ElementType& type, absl::Span<const int64_t> shape, int images,
    const call::WireExtent& raw);

// Returns an extent for each raw file, which is its length in four bytes,
// little-endian, and its bytes.
absl::StatusOr<std::vector<call::WireExtent>> SplitRawFiles(
    absl::Span<const absl::string_view> parts, int images,
    const call::WireExtent& raw);

// Returns an extent for each file in the `bytes_contents` of an
// InferTensorContents.
absl::StatusOr<std::vector<call::WireExtent>> SplitTypedFiles(
    absl::Span<const absl::string_view> parts, int images,
    const call::WireExtent& contents);

// Writes the elements of an InferTensorContents, exactly `count` of FP32 or
// UINT8, to `to` as raw bytes.
absl::Status ReadTypedNumbers(absl::Span<const absl::string_view> parts,
                              const ElementType& type, int64_t count,
                              const call::WireExtent& contents, uint8_t* to);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_TENSOR_ELEMENTS_H_
