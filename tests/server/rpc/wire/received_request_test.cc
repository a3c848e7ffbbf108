#include "server/rpc/wire/received_request.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/api/vision/from_proto.h"
#include "server/call/call.h"
#include "server/errors/error.h"

namespace grpc_core {

// Declares gRPC's execution context of a thread, whose header is not public.
// If a thread has no ExecCtx, gRPC's functions create one while they run.
class ExecCtx {
 public:
  static thread_local ExecCtx* exec_ctx_;
};

}  // namespace grpc_core

namespace sfmamba::rpc {
namespace {

using v1::ClassifyRequest;

// A received message and its pictures.
struct Received {
  explicit Received(grpc::ByteBuffer* buffer)
      : pictures(ReadPictures(buffer, 64, &message)) {}

  image::ImageSource image(int i) const {
    image::ImageSource source = *api::FromProto(message.images(i));
    pictures->SetBytes(&source);
    return source;
  }

  ClassifyRequest message;
  const std::unique_ptr<call::Pictures> pictures;
};

// Returns the bytes of image `i`, which is a tensor or a pixel buffer. If
// pixels lie in several slices, first calls fetch(), which joins them.
std::string DataOf(const Received& request, int i) {
  const image::ImageSource source = request.image(i);
  if (source.fetch) source.fetch();
  if (source.pixels() != nullptr) return std::string(source.pixels()->data);
  EXPECT_NE(source.tensor()->data.empty(), source.tensor()->pieces.empty());
  return absl::StrCat(source.tensor()->data,
                      absl::StrJoin(source.tensor()->pieces, ""));
}

// Returns the bytes in slices. A slice ends at each of `cuts`, which are
// positions in `bytes`.
grpc::ByteBuffer InSlices(const std::string& bytes,
                          const std::vector<size_t>& cuts) {
  std::vector<grpc::Slice> slices;
  size_t start = 0;
  for (size_t cut : cuts) {
    slices.emplace_back(bytes.substr(start, cut - start));
    start = cut;
  }
  slices.emplace_back(bytes.substr(start));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Tail(int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

ClassifyRequest TwoImages() {
  ClassifyRequest request;
  request.set_model("m");
  request.add_images()->set_encoded(Tail(100));
  v1::Tensor* tensor = request.add_images()->mutable_tensor();
  tensor->set_data_type(v1::Tensor::UINT8);
  tensor->set_data(Tail(300));
  return request;
}

TEST(ReadPicturesTest, PicturesAreWholeHoweverTheyWereCut) {
  const std::string bytes = TwoImages().SerializeAsString();
  for (size_t cut = 0; cut < bytes.size(); cut += 7) {
    grpc::ByteBuffer buffer = InSlices(bytes, {cut, cut, (cut + 400) / 2});
    if ((cut + 400) / 2 < cut) break;
    Received request(&buffer);
    ASSERT_TRUE(request.pictures->status().ok());
    EXPECT_EQ(buffer.Length(), 0u);
    EXPECT_EQ(request.message.model(), "m");
    ASSERT_EQ(request.pictures->count(), 2);
    EXPECT_EQ(request.image(0).encoded()->bytes, Tail(100));
    EXPECT_EQ(DataOf(request, 1), Tail(300));
  }
}

// Counts how often a message's memory was freed, by gRPC's code and by other
// code. The thread has an ExecCtx only while gRPC's code runs.
struct Freed {
  int by_grpc = 0, by_others = 0;

  static void Destroy(void* freed) {
    ++(grpc_core::ExecCtx::exec_ctx_ != nullptr
           ? static_cast<Freed*>(freed)->by_grpc
           : static_cast<Freed*>(freed)->by_others);
  }
};

// If gRPC is short of memory, it continues other work when this memory is
// freed. gRPC stores this work in the thread's ExecCtx. Threads outside gRPC
// usually have none. So the memory must be freed by a function of gRPC that
// creates an ExecCtx.
TEST(ReadPicturesTest, WhatGrpcReceivedIntoIsFreedByGrpc) {
  std::string bytes = TwoImages().SerializeAsString();
  const auto receive = [&bytes](Freed* freed, int slices) {
    std::vector<grpc::Slice> received;
    for (int i = 0; i < slices; ++i) {
      const size_t begin = i * bytes.size() / slices;
      const size_t end = (i + 1) * bytes.size() / slices;
      received.emplace_back(&bytes[begin], end - begin, Freed::Destroy, freed);
    }
    grpc::ByteBuffer keep(received.data(), received.size());
    received.clear();
    return keep;
  };
  for (int slices : {1, 2, 5}) {
    Freed released, joined, dropped, refused;
    {
      grpc::ByteBuffer buffer = receive(&released, slices);
      Received request(&buffer);
      EXPECT_EQ(request.image(0).encoded()->bytes.size(), 100u);
      request.pictures->Release();
      EXPECT_EQ(released.by_grpc, slices);
    }
    {
      grpc::ByteBuffer buffer = receive(&joined, slices);
      Received request(&buffer);
      for (int i : {0, 1}) {
        const image::ImageSource source = request.image(i);
        if (source.fetch) source.fetch();
      }
    }
    {
      grpc::ByteBuffer buffer = receive(&dropped, slices);
      const Received request(&buffer);
    }
    bytes[0] = '\xff';
    {
      grpc::ByteBuffer buffer = receive(&refused, slices);
      const Received request(&buffer);
      EXPECT_FALSE(request.pictures->status().ok());
    }
    bytes = TwoImages().SerializeAsString();
    for (const Freed& freed : {released, joined, dropped, refused}) {
      EXPECT_EQ(freed.by_grpc, slices);
      EXPECT_EQ(freed.by_others, 0);
    }
  }
}

TEST(ReadPicturesTest, APictureInOneSliceIsNotCopied) {
  const std::string bytes = TwoImages().SerializeAsString();
  grpc::Slice slice(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE);
  grpc::ByteBuffer buffer(&slice, 1);
  Received request(&buffer);
  EXPECT_FALSE(request.image(1).fetch);
  const absl::string_view data = request.image(1).tensor()->data;
  EXPECT_GE(data.data(), bytes.data());
  EXPECT_LE(data.data() + data.size(), bytes.data() + bytes.size());
}

// Returns a slice that sets `freed` when its memory is freed.
grpc::Slice Watched(std::string* bytes, bool* freed) {
  return grpc::Slice(
      bytes->data(), bytes->size(),
      [](void* freed) { *static_cast<bool*>(freed) = true; }, freed);
}

TEST(ReadPicturesTest, MemoryIsGivenBackOnceItIsJoinedOrReleased) {
  ClassifyRequest sent = TwoImages();
  v1::PixelBuffer* pixels = sent.mutable_images(1)->mutable_pixels();
  pixels->set_format(v1::PixelBuffer::GRAY8);
  pixels->set_data(Tail(300));
  std::string bytes = sent.SerializeAsString();
  std::string head = bytes.substr(0, 150), tail = bytes.substr(150);
  bool head_freed = false, tail_freed = false;
  grpc::ByteBuffer buffer;
  {
    const grpc::Slice slices[] = {Watched(&head, &head_freed),
                                  Watched(&tail, &tail_freed)};
    buffer = grpc::ByteBuffer(slices, 2);
  }
  Received request(&buffer);
  EXPECT_FALSE(head_freed);
  EXPECT_FALSE(tail_freed);
  EXPECT_EQ(request.image(1).pixels()->data.size(), 300u);
  // Reading the size does not fetch the bytes, so this slice is still needed.
  EXPECT_FALSE(tail_freed);
  // The bytes lie in both slices.
  EXPECT_EQ(DataOf(request, 1), Tail(300));
  // The other picture still lies in the head.
  EXPECT_FALSE(head_freed);
  EXPECT_TRUE(tail_freed);
  request.pictures->Release();
  EXPECT_TRUE(head_freed);
}

TEST(ReadPicturesTest, AbsentAndEmptyBytesAreEmpty) {
  ClassifyRequest sent;
  sent.add_images()->mutable_tensor()->set_data_type(v1::Tensor::FP32);
  sent.add_images()->set_encoded("");
  grpc::ByteBuffer buffer = InSlices(sent.SerializeAsString(), {});
  Received request(&buffer);
  EXPECT_EQ(request.image(0).tensor()->data, "");
  EXPECT_EQ(request.image(1).encoded()->bytes, "");
}

TEST(ReadPicturesTest, WhatProtobufRefusesIsMalformed) {
  std::string text = TwoImages().SerializeAsString();
  text[2] = '\xff';  // The model's name is not UTF-8.
  for (const std::string& bytes :
       {text, std::string("\x1a\x01\x08", 3), std::string("\x0a\x05x")}) {
    grpc::ByteBuffer buffer = InSlices(bytes, {});
    Received request(&buffer);
    EXPECT_EQ(server::GetErrorDetail(request.pictures->status()).reason,
              "MALFORMED_MESSAGE");
    EXPECT_EQ(request.message.model(), "");
  }
}

TEST(ReadPicturesTest, NoBytesAreARequestWithoutImages) {
  grpc::ByteBuffer buffer;
  Received request(&buffer);
  EXPECT_TRUE(request.pictures->status().ok());
  EXPECT_EQ(request.pictures->count(), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
