// Changes valid requests at random, in the same way in each run, and divides
// them into parts. The server finds pictures with its own parser and gives the
// rest to protobuf. Together they must accept the same requests as protobuf
// alone and find the same contents.
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "server/call/wire/wire_request.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/fuzz/mutator.h"

namespace sfmamba {
namespace {

constexpr int kMutants = 60000;

void FillParams(v1::ClassifyParams* params) {
  params->set_min_score(0.5f);
  for (int id : {2, 300, 70000}) params->add_class_filter(id);
}

void FillParams(v1::DetectParams* params) {
  params->set_score_threshold(0.5f);
  for (int id : {2, 300, 70000}) params->add_class_filter(id);
  params->set_mask_encoding(v1::DetectParams::PNG_CROP);
}

void FillParams(v1::SegmentParams* params) {
  for (int id : {2, 300, 70000}) params->add_class_filter(id);
  params->set_output_size(v1::SegmentParams::MODEL);
}

template <typename Request>
Request ValidRequest() {
  Request request;
  request.set_model("a model");
  request.set_request_id("idé");
  FillParams(request.mutable_params());
  request.mutable_options()->mutable_max_queue_wait()->set_seconds(1);
  request.mutable_options()->set_resize(v1::RequestOptions::LETTERBOX);
  request.add_images()->set_encoded("a file");
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(4);
  pixels.set_row_stride_bytes(-5);
  pixels.set_data("pixels");
  v1::NormalizedRect& crop = *request.mutable_images(1)->mutable_crop();
  crop.set_x_max(0.5);
  crop.set_y_max(1);
  v1::Tensor& tensor = *request.add_images()->mutable_tensor();
  tensor.set_data_type(v1::Tensor::FP16);
  for (int size : {3, 224, 70000}) tensor.add_shape(size);
  tensor.set_data("values");
  request.mutable_images(2)->set_orientation(v1::Image::IGNORE);
  return request;
}

// Returns the request with the fields of its images in an unusual order. A
// source may follow another source, and the last one counts. A message may be
// divided into parts that are merged.
template <typename Request>
std::string Reordered(Mutator* mutator) {
  const Request valid = ValidRequest<Request>();
  Request rest = valid;
  rest.clear_images();
  std::string bytes = rest.SerializeAsString();
  for (int images = mutator->Below(4); images >= 0; --images) {
    std::string image;
    for (int parts = mutator->Below(6); parts > 0; --parts) {
      image += valid.images(mutator->Below(3)).SerializeAsString();
    }
    bytes += '\x12';
    bytes += {static_cast<char>(image.size() | 0x80),
              static_cast<char>(image.size() >> 7)};
    bytes += image;
  }
  return bytes;
}

std::vector<absl::string_view> InParts(absl::string_view bytes,
                                       Mutator* mutator) {
  std::vector<absl::string_view> parts;
  while (!bytes.empty() && parts.size() < 6) {
    parts.push_back(bytes.substr(0, mutator->Below(bytes.size() + 1)));
    bytes.remove_prefix(parts.back().size());
  }
  parts.push_back(bytes);
  return parts;
}

// Undoes what the server's parser did to one field. The parser has left out the
// picture bytes of the field and put an index into wire.extents in their place.
// Replaces the index in `bytes` by the picture bytes from `message`.
void SetBytes(absl::string_view message, const call::WireRequest& wire,
              std::string* bytes) {
  if (bytes->empty()) return;
  const call::WireExtent& extent = wire.extents[call::ExtentIndex(*bytes)];
  *bytes = std::string(message.substr(extent.position, extent.length));
}

// Parses the request as the server does. The server's parser leaves out picture
// bytes, and protobuf parses the rest. Then puts the picture bytes back and
// returns the request.
template <typename Request>
absl::StatusOr<Request> ByWalk(const std::string& bytes, Mutator* mutator) {
  call::WireRequest wire;
  const absl::Status status =
      call::WalkRequest(InParts(bytes, mutator), call::WireLimits(), &wire);
  if (!status.ok()) return status;
  Request request;
  if (!request.ParseFromString(wire.rest)) {
    return absl::InvalidArgumentError("not parsed");
  }
  EXPECT_EQ(wire.images, request.images_size());
  for (v1::Image& image : *request.mutable_images()) {
    switch (image.source_case()) {
      case v1::Image::kEncoded:
        SetBytes(bytes, wire, image.mutable_encoded());
        break;
      case v1::Image::kPixels:
        SetBytes(bytes, wire, image.mutable_pixels()->mutable_data());
        break;
      case v1::Image::kTensor:
        SetBytes(bytes, wire, image.mutable_tensor()->mutable_data());
        break;
      default:
        break;
    }
  }
  return request;
}

// Returns the request without unknown fields. The result is serialized, because
// a NaN in a message is not equal to itself.
template <typename Request>
std::string Known(Request request) {
  request.DiscardUnknownFields();
  return request.SerializeAsString();
}

template <typename Request>
void CompareWithProtobuf() {
  const google::protobuf::LogSilencer silencer;
  Mutator mutator;
  int refused = 0, accepted = 0;
  for (int i = 0; i < kMutants; ++i) {
    std::string bytes = i % 2 == 0 ? ValidRequest<Request>().SerializeAsString()
                                   : Reordered<Request>(&mutator);
    if (i % 8 > 1) bytes = mutator.Mutate(bytes);
    Request expected;
    const bool valid = expected.ParseFromString(bytes);
    const absl::StatusOr<Request> got = ByWalk<Request>(bytes, &mutator);
    ASSERT_EQ(got.ok(), valid) << "mutant " << i << ": " << got.status();
    ++(valid ? accepted : refused);
    if (!valid) continue;
    ASSERT_EQ(Known(*got), Known(expected)) << "mutant " << i;
  }
  EXPECT_GT(refused, kMutants / 10);
  EXPECT_GT(accepted, kMutants / 5);
}

TEST(WireFuzzTest, ARequestIsWhatProtobufSaysItIs) {
  CompareWithProtobuf<v1::ClassifyRequest>();
  CompareWithProtobuf<v1::DetectRequest>();
  CompareWithProtobuf<v1::SegmentRequest>();
}

// Returns a request with an image whose message PixelBuffer contains an unknown
// field. The field consists of `groups` nested protobuf groups.
std::string Nested(int groups) {
  std::string pixels;
  for (int i = 0; i < groups; ++i) pixels += '\x4b';
  for (int i = 0; i < groups; ++i) pixels += '\x4c';
  std::string image = "\x12";
  image += {static_cast<char>(pixels.size() | 0x80),
            static_cast<char>(pixels.size() >> 7)};
  image += pixels;
  std::string all = "\x12";
  all += {static_cast<char>(image.size() | 0x80),
          static_cast<char>(image.size() >> 7)};
  return all + image;
}

TEST(WireFuzzTest, NestingEndsWhereProtobufsDoes) {
  Mutator mutator;
  int refused = 0;
  for (int groups = 90; groups < 110; ++groups) {
    v1::ClassifyRequest expected;
    const bool valid = expected.ParseFromString(Nested(groups));
    refused += !valid;
    EXPECT_EQ(ByWalk<v1::ClassifyRequest>(Nested(groups), &mutator).ok(), valid)
        << groups;
  }
  EXPECT_GT(refused, 5);
  EXPECT_LT(refused, 15);
}

}  // namespace
}  // namespace sfmamba
