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

// The element types of the file format. In a file, a type's name is the
// constant's name without the k and in capitals ("F32").
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

// A safetensors file, read into memory. Later changes to the file have no
// effect here. The file begins with the header's length N (8 bytes,
// little-endian). N bytes of JSON follow, with each tensor's type, shape and
// offsets, and then the data. Immutable, so thread-safe.
//
// The header is not trusted. Its length is checked before it is read. Every
// tensor's size must match its shape and type. The tensors must fill the rest
// of the file without gaps or overlaps.
class SafetensorsFile {
 public:
  // NOT_FOUND if there is no such file. INVALID_ARGUMENT, naming the file and
  // if possible the tensor, if the file violates the format. RESOURCE_EXHAUSTED
  // if there is no memory for it.
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
// data. Errors are as for SafetensorsFile::Open(). It is also an error if the
// file is shorter or longer than its header says.
absl::StatusOr<std::map<std::string, TensorView>> ReadSafetensorsShapes(
    const std::string& path);

// Adds the tensors of one file to `tensors`, because several files may make up
// a checkpoint. INVALID_ARGUMENT, naming the tensor, if another file has it,
// too.
absl::Status AddTensors(const std::map<std::string, TensorView>& file,
                        std::map<std::string, TensorView>* tensors);

// Writes `tensors` to `path` and replaces an existing file. INVALID_ARGUMENT if
// the size of a tensor's data does not match its shape and type.
absl::Status WriteSafetensors(const std::string& path,
                              const std::map<std::string, TensorView>& tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_H_
