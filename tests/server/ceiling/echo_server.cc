#include "tests/server/ceiling/echo_server.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/server/ceiling/decode_alone.h"

namespace sfmamba {
namespace {

// Processes a request's bytes before the answer.
using Look = void (*)(const grpc::ByteBuffer& request);

void DoNotLook(const grpc::ByteBuffer& /*request*/) {}

void Decode(const grpc::ByteBuffer& request) {
  grpc::Slice bytes;
  v1::ClassifyRequest message;
  if (!request.DumpToSingleSlice(&bytes).ok() ||
      !message.ParseFromArray(bytes.begin(), bytes.size())) {
    std::abort();
  }
  if (!DecodeOnce(message.images(0).encoded())) std::abort();
}

// Answers each request with the same bytes, which are as long as the server's
// answers.
class Echo final : public v1::VisionService::WithRawCallbackMethod_Classify<
                       v1::VisionService::Service> {
 public:
  explicit Echo(Look look) : look_(look) {
    v1::ClassifyResponse response;
    response.set_model("models/null/versions/1");
    v1::ClassifyResult* result = response.add_results();
    for (int i = 0; i < 5; ++i) {
      v1::Category* category = result->add_categories();
      category->set_class_id(i + 1);
      category->set_label(absl::StrCat("label ", i));
      category->set_score(0.001);
    }
    const grpc::Slice slice(response.SerializeAsString());
    answer_ = grpc::ByteBuffer(&slice, 1);
  }
  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override {
    look_(*request);
    *response = answer_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const Look look_;
  grpc::ByteBuffer answer_;
};

void Serve(Look look, const Listening& listening) {
  Echo echo(look);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  listening({port, 0});
  while (true) pause();
}

}  // namespace

void ServeEcho(const Listening& listening) { Serve(DoNotLook, listening); }

void ServeDecodingEcho(const Listening& listening) { Serve(Decode, listening); }

}  // namespace sfmamba
