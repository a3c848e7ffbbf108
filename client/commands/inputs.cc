#include "client/commands/inputs.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/image_format.h"

namespace sfmamba::client {
namespace {

// Returns why the last operation on the file failed, with the system's reason.
std::string Failure(absl::string_view verb, const std::string& path) {
  return absl::StrCat("cannot ", verb, " '", path, "'", errno == 0 ? "" : ": ",
                      errno == 0 ? "" : std::strerror(errno));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  // Opening a directory succeeds, but reading it fails.
  if (!file || (file.peek() != EOF && !(bytes << file.rdbuf())) || file.bad()) {
    return absl::NotFoundError(Failure("read", path));
  }
  return std::move(bytes).str();
}

absl::Status SaveFile(const std::string& path, absl::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (file.write(bytes.data(), bytes.size()).flush()) return absl::OkStatus();
  return absl::UnavailableError(Failure("write", path));
}

absl::Status CheckCanWrite(const std::string& path) {
  errno = 0;
  if (std::ofstream(path, std::ios::app)) return absl::OkStatus();
  return absl::UnavailableError(Failure("write", path));
}

absl::StatusOr<v1::Image> ReadImage(const std::string& path,
                                    const PrepareImage& prepare) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  if (prepare == nullptr) {
    v1::Image image;
    image.set_encoded(*std::move(bytes));
    return image;
  }
  absl::StatusOr<v1::Image> image = prepare(*bytes);
  if (image.ok()) return image;
  return absl::Status(image.status().code(),
                      absl::StrCat("'", path, "': ", image.status().message()));
}

bool IsPictureFile(const std::filesystem::path& path) {
  std::error_code error;
  if (absl::StartsWith(path.filename().string(), ".") ||
      !std::filesystem::is_regular_file(path, error)) {
    return false;
  }
  const std::string extension =
      absl::AsciiStrToLower(path.extension().string());
  for (const absl::string_view name :
       {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"}) {
    if (extension == name) return true;
  }
  char start[16] = "";
  std::ifstream file(path, std::ios::binary);
  file.read(start, sizeof(start));
  return base::FormatOf({start, static_cast<size_t>(file.gcount())})
      .has_value();
}

absl::StatusOr<v1::Image> SyntheticTensor(const v1::Model& model,
                                          v1::Tensor::DataType type,
                                          uint64_t seed) {
  if (type != v1::Tensor::FP32 && type != v1::Tensor::UINT8) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic tensors are FP32 or UINT8, not ",
                     v1::Tensor::DataType_Name(type)));
  }
  if (model.input().buckets().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(model.name(), " names no input size"));
  }
  const v1::InputSpec::Size& size = model.input().buckets(0);
  v1::Image image;
  v1::Tensor& tensor = *image.mutable_tensor();
  tensor.set_data_type(type);
  for (const int64_t side : {3, size.height(), size.width()}) {
    tensor.add_shape(side);
  }
  const size_t count = size_t{3} * size.height() * size.width();
  std::mt19937_64 random(seed);
  std::string& data = *tensor.mutable_data();
  if (type == v1::Tensor::UINT8) {
    data.reserve(count);
    for (size_t i = 0; i < count; ++i) data += static_cast<char>(random());
  } else {
    data.resize(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      const float value =
          std::ldexp(static_cast<float>(random() >> 40), -22) - 2;
      std::memcpy(&data[i * sizeof(float)], &value, sizeof(float));
    }
  }
  return image;
}

}  // namespace sfmamba::client
