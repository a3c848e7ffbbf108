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

// Returns the bytes of a file. Returns NOT_FOUND with the file's name and the
// reason if the file cannot be read.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Replaces the file's contents. Returns UNAVAILABLE with the file's name and
// the reason if the file cannot be written.
absl::Status SaveFile(const std::string& path, absl::string_view bytes);

// Returns UNAVAILABLE if SaveFile() could not open the file. Creates the file
// if it does not exist. An existing file is not changed.
absl::Status CheckCanWrite(const std::string& path);

// Makes an image from a file's bytes. If this function is null, the image
// contains the bytes unchanged.
using PrepareImage =
    std::function<absl::StatusOr<v1::Image>(const std::string& bytes)>;
// Reads a file and makes an image from it. Errors contain the file's name.
absl::StatusOr<v1::Image> ReadImage(const std::string& path,
                                    const PrepareImage& prepare);

// Returns true if a file in a folder is treated as a picture. It must not be
// hidden, and it must be a JPEG, PNG or WebP by its first bytes or by its name.
// The name alone is enough, so that a broken picture causes an error and is not
// ignored.
bool IsPictureFile(const std::filesystem::path& path);

// Returns a tensor of random values, in the model's first input size. Equal
// seeds give equal values. FP32 values are in [-2, 2), like normalised pixels.
// UINT8 values are 0 to 255. Returns INVALID_ARGUMENT for another type, and
// FAILED_PRECONDITION if the model has no input size.
absl::StatusOr<v1::Image> SyntheticTensor(const v1::Model& model,
                                          v1::Tensor::DataType type,
                                          uint64_t seed);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_INPUTS_H_
