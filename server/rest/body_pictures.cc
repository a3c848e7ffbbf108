#include "server/rest/body_pictures.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/random/random.h"

namespace sfmamba::rest {
namespace {

constexpr size_t kSecretBytes = 16;
constexpr int kLengthDelimited = 2;  // The wire type.

// A placeholder begins with random bytes, so that no client's picture can be
// taken for one.
std::string NewSecret() {
  absl::BitGen random;
  std::string secret;
  while (secret.size() < kSecretBytes) {
    secret.push_back(static_cast<char>(absl::Uniform<uint8_t>(random)));
  }
  return secret;
}

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

// Appends the tag and the length of a field of bytes or of a message.
void AppendHead(int field, size_t length, std::string* to) {
  AppendVarint(field << 3 | kLengthDelimited, to);
  AppendVarint(length, to);
}

// The bytes within an image's source that may be a placeholder, and the
// message that has them, or null for the image itself.
struct Source {
  std::string* bytes = nullptr;
  int field = 0;  // The number of the bytes' field.
  const google::protobuf::Message* outer = nullptr;
  int outer_field = 0;
};

Source SourceOf(v1::Image* image) {
  switch (image->source_case()) {
    case v1::Image::kEncoded:
      return {image->mutable_encoded(), v1::Image::kEncodedFieldNumber};
    case v1::Image::kPixels:
      return {image->mutable_pixels()->mutable_data(),
              v1::PixelBuffer::kDataFieldNumber, &image->pixels(),
              v1::Image::kPixelsFieldNumber};
    case v1::Image::kTensor:
      return {image->mutable_tensor()->mutable_data(),
              v1::Tensor::kDataFieldNumber, &image->tensor(),
              v1::Image::kTensorFieldNumber};
    default:
      return {};
  }
}

void Flush(std::string* small, std::vector<grpc::Slice>* slices) {
  if (!small->empty()) slices->emplace_back(*small);
  small->clear();
}

}  // namespace

BodyPictures::BodyPictures(std::string body)
    : body_(std::make_shared<std::string>(std::move(body))),
      secret_(NewSecret()) {}

std::string BodyPictures::Add(size_t begin, size_t size) {
  const uint32_t index = extents_.size();
  extents_.push_back({begin, size});
  std::string placeholder = secret_;
  placeholder.append(reinterpret_cast<const char*>(&index), sizeof(index));
  return placeholder;
}

const BodyPictures::Extent* BodyPictures::Find(absl::string_view bytes) const {
  uint32_t index;
  if (bytes.size() != kSecretBytes + sizeof(index)) return nullptr;
  if (bytes.substr(0, kSecretBytes) != secret_) return nullptr;
  std::memcpy(&index, bytes.data() + kSecretBytes, sizeof(index));
  return index < extents_.size() ? &extents_[index] : nullptr;
}

grpc::Slice BodyPictures::SliceOf(const Extent& extent) const {
  const auto destroy = [](void* body) {
    delete static_cast<std::shared_ptr<std::string>*>(body);
  };
  return grpc::Slice(body_->data() + extent.begin, extent.size, destroy,
                     new std::shared_ptr<std::string>(body_));
}

grpc::ByteBuffer BodyPictures::Message(
    std::string rest,
    google::protobuf::RepeatedPtrField<v1::Image>* images) const {
  std::vector<grpc::Slice> slices;
  std::string small = std::move(rest);
  for (v1::Image& image : *images) Append(&image, &small, &slices);
  Flush(&small, &slices);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

void BodyPictures::Append(v1::Image* image, std::string* small,
                          std::vector<grpc::Slice>* slices) const {
  // ClassifyRequest, DetectRequest and SegmentRequest number it alike.
  constexpr int kImages = v1::ClassifyRequest::kImagesFieldNumber;
  static_assert(v1::DetectRequest::kImagesFieldNumber == kImages);
  static_assert(v1::SegmentRequest::kImagesFieldNumber == kImages);
  const Source source = SourceOf(image);
  const Extent* extent =
      source.bytes == nullptr ? nullptr : Find(*source.bytes);
  if (extent == nullptr) {
    AppendHead(kImages, image->ByteSizeLong(), small);
    image->AppendToString(small);
    return;
  }
  source.bytes->clear();
  std::string head;
  AppendHead(source.field, extent->size, &head);
  if (source.outer != nullptr) {
    const std::string outer = source.outer->SerializeAsString();
    std::string outer_head;
    AppendHead(source.outer_field, outer.size() + head.size() + extent->size,
               &outer_head);
    head = outer_head + outer + head;
  }
  image->clear_source();
  const std::string others = image->SerializeAsString();
  AppendHead(kImages, others.size() + head.size() + extent->size, small);
  *small += others + head;
  Flush(small, slices);
  slices->push_back(SliceOf(*extent));
}

}  // namespace sfmamba::rest
