#ifndef SFMAMBA_TESTS_SERVER_API_KSERVE_KSERVE_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_API_KSERVE_KSERVE_FIXTURE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/fake_model.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::kserve {

using inference::ModelInferRequest;
using inference::ModelInferResponse;

// Raw() and Values() convert numbers to and from the protocol's raw bytes.
template <typename T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}
template <typename T>
std::vector<T> Values(const std::string& raw) {
  std::vector<T> values(raw.size() / sizeof(T));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
  return values;
}

// Returns an element of type BYTES in the form of raw contents. Its length
// comes first.
inline std::string RawElement(const std::string& bytes) {
  return Raw<uint32_t>({static_cast<uint32_t>(bytes.size())}) + bytes;
}

constexpr int64_t kSide = server::FakeModel::kSide;
// The number of values of an image.
constexpr int64_t kValues = 3 * kSide * kSide;

// Returns a request for "fake" with one input. The input has no elements yet.
inline ModelInferRequest RequestFor(const std::string& datatype,
                                    const std::vector<int64_t>& shape) {
  ModelInferRequest request;
  request.set_model_name("fake");
  auto* input = request.add_inputs();
  input->set_name("image");
  input->set_datatype(datatype);
  input->mutable_shape()->Add(shape.begin(), shape.end());
  return request;
}

// Returns a request with one image, as raw contents. All of its values are
// `value`.
inline ModelInferRequest Fp32Request(float value = 0.25f) {
  ModelInferRequest request = RequestFor("FP32", {1, 3, kSide, kSide});
  request.add_raw_input_contents(Raw(std::vector<float>(kValues, value)));
  return request;
}

// Returns a request with these picture files, as raw contents.
inline ModelInferRequest BytesRequest(const std::vector<std::string>& files) {
  ModelInferRequest request =
      RequestFor("BYTES", {static_cast<int64_t>(files.size())});
  std::string raw;
  for (const std::string& file : files) raw += RawElement(file);
  request.add_raw_input_contents(raw);
  return request;
}

class KserveTest : public server::VisionServiceTest {
 protected:
  void Start(const std::string& batching = "",
             v1::ServerConfig config = v1::ServerConfig(), bool load = true,
             model::VisionTask task = model::VisionTask::kClassification) {
    VisionServiceTest::Start(batching, std::move(config), load, task);
    stub_ = inference::GRPCInferenceService::NewStub(server_->channel());
  }
  void Start(model::VisionTask task) {
    Start("", v1::ServerConfig(), /*load=*/true, task);
  }

  server::Ending Infer(const ModelInferRequest& request,
                       ModelInferResponse* response = nullptr) {
    grpc::ClientContext context;
    ModelInferResponse own;
    const grpc::Status status = stub_->ModelInfer(
        &context, request, response != nullptr ? response : &own);
    return server::EndingOf(status, &context);
  }

  // Returns the answer to a request that must succeed.
  ModelInferResponse Answer(const ModelInferRequest& request) {
    ModelInferResponse response;
    const server::Ending ending = Infer(request, &response);
    EXPECT_EQ(ending.code, grpc::StatusCode::OK) << ending.message;
    return response;
  }

  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_TESTS_SERVER_API_KSERVE_KSERVE_FIXTURE_H_
