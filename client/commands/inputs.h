#ifndef SFMAMBA_CLIENT_COMMANDS_INPUTS_H_
#define SFMAMBA_CLIENT_COMMANDS_INPUTS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// The bytes of a file. NOT_FOUND names it and says what is wrong with it.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Replaces what the file holds. UNAVAILABLE names it and says why it could not.
absl::Status SaveFile(const std::string& path, absl::string_view bytes);

// UNAVAILABLE if SaveFile() could not open the file. One that is missing is
// made, one that is there keeps what it holds.
absl::Status CheckCanWrite(const std::string& path);

// Makes an image of a file's bytes; null: one that has the bytes.
using PrepareImage =
    std::function<absl::StatusOr<v1::Image>(const std::string& bytes)>;
// The image that is made of a file; the error names it.
absl::StatusOr<v1::Image> ReadImage(const std::string& path,
                                    const PrepareImage& prepare);

// Whether a file of a folder is taken as a picture: it is not hidden, and a
// JPEG, PNG or WebP by its first bytes. One that only its name says to be such
// is taken too, so that it is refused and not passed over in silence.
bool IsPictureFile(const std::filesystem::path& path);

// Random values of the model's first input size, the same for the same seed:
// FP32 in
// [-2, 2), as normalised pixels are, or any UINT8. INVALID_ARGUMENT for another
// type, FAILED_PRECONDITION if the model names no input size.
absl::StatusOr<v1::Image> SyntheticTensor(const v1::Model& model,
                                          v1::Tensor::DataType type,
                                          uint64_t seed);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_INPUTS_H_
