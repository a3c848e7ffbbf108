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

// The element types of the file format. DTypeName() returns a type's name in a
// file, for example "F32" for kF32 and "F8_E4M3" for kF8E4M3.
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

// A tensor that refers to its values but does not own their memory.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // Empty for a scalar.
  absl::Span<const uint8_t>
      data;  // Row-major, little-endian, maybe misaligned.
};

// A safetensors file that was read into memory. Later changes to the file have
// no effect. The file begins with the length N of the header (8 bytes,
// little-endian). The next N bytes are JSON with each tensor's type, shape and
// offsets. The data follows. Immutable, so thread-safe.
//
// The header is not trusted. Its length is checked before it is read. Every
// tensor's size must match its shape and type. The tensors must fill the rest
// of the file without gaps or overlaps.
class SafetensorsFile {
 public:
  // Reads a file. Returns NOT_FOUND if there is no such file. Returns
  // INVALID_ARGUMENT, with the name of the file and if possible the tensor, if
  // the file violates the format. Returns RESOURCE_EXHAUSTED if there is too
  // little memory.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path);

  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  // Returns the tensors by name. Their data lives as long as this object.
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  // Returns the tensor called `name`, or null if there is none.
  const TensorView* Find(const std::string& name) const;

 private:
  SafetensorsFile() = default;

  std::unique_ptr<uint8_t[]> data_;  // The bytes after the header.
  std::map<std::string, TensorView> tensors_;
};

// Reads only the header of the file. Returns its tensors by name, without their
// data. Returns the errors of SafetensorsFile::Open(). Also returns an error if
// the file's size does not match its header.
absl::StatusOr<std::map<std::string, TensorView>> ReadSafetensorsShapes(
    const std::string& path);

// Adds the tensors of one file to `tensors`. A checkpoint may consist of
// several files. If `tensors` already has a tensor of the same name, returns
// INVALID_ARGUMENT with this name.
absl::Status AddTensors(const std::map<std::string, TensorView>& file,
                        std::map<std::string, TensorView>* tensors);

// Writes `tensors` to `path` and replaces an existing file. Returns
// INVALID_ARGUMENT if the size of a tensor's data does not match its shape and
// type.
absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, TensorView>& tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_H_
