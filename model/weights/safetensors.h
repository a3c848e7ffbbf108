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

// The element types of the file format. Their names in a file are those of the
// constants, without the k and in capitals ("F32").
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
int DTypeSize(DType dtype);  // In bytes.

// A tensor in memory that it does not own.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // Empty for a scalar.
  absl::Span<const uint8_t>
      data;  // Row-major, little-endian, maybe misaligned.
};

// A safetensors file, mapped into memory. The file consists of the header's
// length N (8 bytes, little-endian), N bytes of JSON with each tensor's type,
// shape and offsets, and the data. Immutable, so thread-safe. The file must not
// shrink while this object lives.
//
// The header is not trusted. Its length is checked before it is read. Every
// tensor's size must match its shape and type. The tensors must fill the rest
// of the file without gaps or overlaps.
class SafetensorsFile {
 public:
  // NOT_FOUND if there is no such file. INVALID_ARGUMENT, naming the file and
  // if possible the tensor, if the file violates the format.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);

  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // The tensors by name. Their data lives as long as this object.
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  // Returns the tensor called `name`, or null if there is none.
  const TensorView* Find(const std::string& name) const;

 private:
  SafetensorsFile(const uint8_t* mapping, size_t size)
      : mapping_(mapping), size_(size) {}

  const uint8_t* mapping_;  // Owned; the destructor unmaps it.
  size_t size_;             // The size of the file in bytes.
  std::map<std::string, TensorView> tensors_;
};

// Writes `tensors` to `path` and replaces an existing file. INVALID_ARGUMENT if
// the size of a tensor's data does not match its shape and type.
absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, TensorView>& tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_H_
