#ifndef SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_H_
#define SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::weights {

// The element types of the file format; the names in a file are the constants'
// without the k, in capitals ("F32").
enum class DType {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};

absl::string_view DTypeName(DType dtype);
int DTypeSize(DType dtype);  // Bytes an element.

// A tensor in somebody else's memory.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // Empty: a scalar.
  absl::Span<const uint8_t>
      data;  // Row-major, little-endian, maybe misaligned.
};

// A safetensors file, mapped into memory: 8 bytes with the header's length (N,
// little-endian), N bytes of JSON that give each tensor's type, shape and
// place, then the data. Immutable, so thread-safe. The file must not shrink
// meanwhile.
//
// Nothing in the header is believed: its length is checked before it is read;
// every tensor's size must follow from its shape and type; the tensors must
// fill the rest of the file without gap or overlap.
class SafetensorsFile {
 public:
  // NOT_FOUND if there is no such file; INVALID_ARGUMENT naming the file and,
  // as far as known, the tensor if it breaks the format.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);

  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // By name, in ascending order; the data lives as long as this object.
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  // Null if there is no such tensor.
  const TensorView* Find(const std::string& name) const;

 private:
  SafetensorsFile(const uint8_t* mapping, size_t size)
      : mapping_(mapping), size_(size) {}

  const uint8_t* mapping_;  // Owned: unmapped by the destructor.
  size_t size_;             // Bytes of the whole file.
  std::map<std::string, TensorView> tensors_;
};

// Writes `tensors` to `path`, over what is there. INVALID_ARGUMENT if a
// tensor's data does not have the size of its shape and type.
absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, TensorView>& tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_H_
