#include "server/rpc/wire/received_request.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "inference/grpc_service.pb.h"
#include "server/api/kserve/infer_request.h"

namespace sfmamba::rpc {
namespace {

// Sets the bytes of an image. The bytes may lie in several slices (buffers) of
// the received message. If so, an encoded image is joined into one buffer
// immediately, because its header is read before the request is admitted. A
// pixel buffer is joined later, by ImageSource::fetch. A tensor is not joined.
struct Set {
  PictureBytes* pictures;
  std::function<void()>* fetch;

  void operator()(std::monostate) const {}
  void operator()(const image::PictureRegion&) const {}
  void operator()(image::EncodedImage& image) const {
    Replace(&image.bytes);
    if (*fetch) (*fetch)();
    *fetch = nullptr;
  }
  void operator()(image::PixelBuffer& image) const { Replace(&image.data); }
  void operator()(image::InputTensor& image) const {
    // An empty value means that the field was not sent.
    if (image.data.empty()) return;
    const int64_t index = call::ExtentIndex(image.data);
    if (!pictures->CrossesSlices(index)) {
      image.data = pictures->View(index);
    } else {
      image.data = absl::string_view();
      image.pieces = pictures->Pieces(index);
    }
  }

  void Replace(absl::string_view* bytes) const {
    // An empty value means that the field was not sent.
    if (bytes->empty()) return;
    const int64_t index = call::ExtentIndex(*bytes);
    *bytes = pictures->View(index);
    if (!pictures->CrossesSlices(index)) return;
    *fetch = [pictures = pictures, index] { pictures->Join(index); };
  }
};

// Returns a slice that owns the string.
grpc::Slice SliceOf(std::string bytes) {
  auto* const kept = new std::string(std::move(bytes));
  return grpc::Slice(
      &(*kept)[0], kept->size(),
      [](void* data) { delete static_cast<std::string*>(data); }, kept);
}

class SlicedPictures final : public call::Pictures {
 public:
  SlicedPictures(grpc::ByteBuffer* received, int max_images,
                 google::protobuf::Message* message) {
    bytes_ = received->Length();
    const MessageSlices slices(received);
    auto* const infer = dynamic_cast<inference::ModelInferRequest*>(message);
    if (!slices.ok) {
      status_ = call::NotParsed();
    } else if (infer != nullptr) {
      ReadInfer(slices, max_images, infer);
    } else {
      call::WireRequest wire;
      status_ = call::ReadRequest(slices.parts, max_images, &wire, message);
      count_ = wire.images;
      if (status_.ok()) pictures_ = PictureBytes(slices.slices, wire.extents);
    }
  }

  void SetBytes(image::ImageSource* source) override {
    std::visit(Set{&pictures_, &source->fetch}, source->source);
  }
  void Release() override { pictures_.Release(); }

 private:
  void ReadInfer(const MessageSlices& slices, int max_images,
                 inference::ModelInferRequest* message) {
    kserve::InferImages images;
    status_ =
        kserve::ReadInferRequest(slices.parts, max_images, &images, message);
    images_status_ = images.status;
    count_ = images.count;
    bytes_ += images.copy.size();
    if (images.copy.empty()) {
      pictures_ = PictureBytes(slices.slices, images.extents);
    } else {
      pictures_ =
          PictureBytes({SliceOf(std::move(images.copy))}, images.extents);
    }
  }

  PictureBytes pictures_;
};

}  // namespace

std::unique_ptr<call::Pictures> ReadPictures(
    grpc::ByteBuffer* received, int max_images,
    google::protobuf::Message* message) {
  return std::make_unique<SlicedPictures>(received, max_images, message);
}

MessageSlices::MessageSlices(grpc::ByteBuffer* message) {
  owner.Swap(message);
  ok = owner.Length() == 0 || owner.Dump(&slices).ok();
  parts.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    parts.emplace_back(reinterpret_cast<const char*>(slice.begin()),
                       slice.size());
  }
}

PictureBytes::PictureBytes(absl::Span<const grpc::Slice> slices,
                           absl::Span<const call::WireExtent> extents) {
  fields_.resize(extents.size());
  size_t slice = 0;
  int64_t slice_start = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    Field& field = fields_[i];
    field.length = extents[i].length;
    int64_t at = extents[i].position;
    const int64_t end = at + extents[i].length;
    while (at < end) {
      const int64_t slice_end = slice_start + slices[slice].size();
      if (slice_end <= at) {
        slice_start = slice_end;
        ++slice;
        continue;
      }
      const int64_t to = std::min(end, slice_end);
      field.pieces.push_back(
          slices[slice].sub(at - slice_start, to - slice_start));
      at = to;
    }
    field.owner = grpc::ByteBuffer(field.pieces.data(), field.pieces.size());
  }
}

absl::string_view PictureBytes::View(int64_t index) {
  Field& field = fields_[index];
  if (field.pieces.size() == 1) {
    return {reinterpret_cast<const char*>(field.pieces[0].begin()),
            field.length};
  }
  if (field.joined == nullptr) field.joined.reset(new char[field.length]);
  return {field.joined.get(), field.length};
}

std::vector<absl::string_view> PictureBytes::Pieces(int64_t index) const {
  std::vector<absl::string_view> views;
  for (const grpc::Slice& piece : fields_[index].pieces) {
    views.emplace_back(reinterpret_cast<const char*>(piece.begin()),
                       piece.size());
  }
  return views;
}

void PictureBytes::Join(int64_t index) {
  Field& field = fields_[index];
  char* to = field.joined.get();
  for (const grpc::Slice& piece : field.pieces) {
    std::memcpy(to, piece.begin(), piece.size());
    to += piece.size();
  }
  field.pieces = {};
  field.owner.Clear();
}

}  // namespace sfmamba::rpc
