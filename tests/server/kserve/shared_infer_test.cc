// Inference whose tensors are in shared memory, as a client sees it.

#include <algorithm>
#include <string>
#include <vector>

#include "tests/server/kserve/kserve_fixture.h"
#include "tests/server/kserve/shared_object.h"
#include "tests/server/picture.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;

class SharedInferTest : public KserveTest {
 protected:
  void SetUp() override {
    v1::ServerConfig config;
    config.set_system_shared_memory(true);
    Start("", config);
  }

  // Registers all of the object.
  StatusCode Register(const SharedObject& object, const std::string& name) {
    grpc::ClientContext context;
    inference::SystemSharedMemoryRegisterResponse response;
    return stub_
        ->SystemSharedMemoryRegister(
            &context, object.Request(name, object.Bytes().size()), &response)
        .error_code();
  }
  // The number of regions of this name, or with "" of all.
  int Regions(const std::string& name = "") {
    grpc::ClientContext context;
    inference::SystemSharedMemoryStatusRequest request;
    request.set_name(name);
    inference::SystemSharedMemoryStatusResponse response;
    EXPECT_TRUE(
        stub_->SystemSharedMemoryStatus(&context, request, &response).ok());
    return response.regions_size();
  }

  template <typename Tensor>
  static void Share(const std::string& region, int64_t bytes, Tensor* tensor) {
    auto& parameters = *tensor->mutable_parameters();
    parameters["shared_memory_region"].set_string_param(region);
    parameters["shared_memory_byte_size"].set_int64_param(bytes);
  }
  // Asks about the tensor of Fp32Request() where it is shared as "in".
  static ModelInferRequest SharedRequest() {
    ModelInferRequest request = RequestFor("FP32", {1, 3, kSide, kSide});
    Share("in", kValues * sizeof(float), request.mutable_inputs(0));
    return request;
  }
};

TEST_F(SharedInferTest, InputsAndOutputsAreThoseOfMessages) {
  const ModelInferRequest sent = Fp32Request();
  const ModelInferResponse expected = Answer(sent);
  const SharedObject in(sent.raw_input_contents(0));
  const SharedObject out(
      std::string(expected.raw_output_contents(0).size() + 3, '?'));
  ASSERT_EQ(Register(in, "in"), StatusCode::OK);
  ASSERT_EQ(Register(out, "out"), StatusCode::OK);
  EXPECT_EQ(Regions(), 2);
  EXPECT_EQ(Regions("out"), 1);
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(method="SharedMemory")", R"(model="")"}),
            4);

  ModelInferRequest request = SharedRequest();
  request.add_outputs()->set_name("logits");
  Share("out", out.Bytes().size(), request.mutable_outputs(0));
  request.add_outputs()->set_name("embedding");
  const ModelInferResponse response = Answer(request);
  ASSERT_EQ(response.outputs_size(), 2);
  ASSERT_EQ(response.raw_output_contents_size(), 2);
  EXPECT_EQ(response.raw_output_contents(0), "");
  EXPECT_EQ(response.raw_output_contents(1), expected.raw_output_contents(1));
  EXPECT_EQ(out.Bytes(), expected.raw_output_contents(0) + "???");
  const auto& parameters = response.outputs(0).parameters();
  EXPECT_EQ(parameters.at("shared_memory_region").string_param(), "out");
  EXPECT_EQ(parameters.at("shared_memory_byte_size").int64_param(),
            expected.raw_output_contents(0).size());

  grpc::ClientContext context;
  inference::SystemSharedMemoryUnregisterResponse done;
  EXPECT_TRUE(stub_->SystemSharedMemoryUnregister(&context, {}, &done).ok());
  EXPECT_EQ(Regions(), 0);
  EXPECT_EQ(Infer(SharedRequest()).code, StatusCode::INVALID_ARGUMENT);
}

TEST_F(SharedInferTest, TheServerSaysThatItTakesPartInIt) {
  grpc::ClientContext context;
  inference::ServerMetadataResponse metadata;
  ASSERT_TRUE(stub_->ServerMetadata(&context, {}, &metadata).ok());
  const auto& extensions = metadata.extensions();
  EXPECT_EQ(
      std::count(extensions.begin(), extensions.end(), "system_shared_memory"),
      1);
}

TEST_F(SharedInferTest, PicturesAreFilesWithTheirLengths) {
  const ModelInferRequest sent =
      BytesRequest({server::EncodePng(server::Gradient(32, 24)),
                    server::EncodePng(server::Gradient(24, 24))});
  const SharedObject in(sent.raw_input_contents(0));
  ASSERT_EQ(Register(in, "in"), StatusCode::OK);
  ModelInferRequest request = RequestFor("BYTES", {2});
  Share("in", sent.raw_input_contents(0).size(), request.mutable_inputs(0));
  EXPECT_EQ(Answer(request).raw_output_contents(0),
            Answer(sent).raw_output_contents(0));
}

TEST_F(SharedInferTest, RefusesWhatIsNotThere) {
  constexpr char kRegion[] = "inputs[0].parameters.shared_memory_region";
  EXPECT_EQ(Infer(SharedRequest()).field, kRegion);
  SharedObject in(Fp32Request().raw_input_contents(0));
  ASSERT_EQ(Register(in, "in"), StatusCode::OK);
  Answer(SharedRequest());

  ModelInferRequest both = SharedRequest();
  both.add_raw_input_contents(Fp32Request().raw_input_contents(0));
  EXPECT_EQ(Infer(both).field, kRegion);

  ModelInferRequest shorter = SharedRequest();
  Share("in", 8, shorter.mutable_inputs(0));
  EXPECT_EQ(Infer(shorter).field,
            "inputs[0].parameters.shared_memory_byte_size");

  ModelInferRequest unknown = SharedRequest();
  unknown.add_outputs()->set_name("logits");
  Share("out", 8, unknown.mutable_outputs(0));
  EXPECT_EQ(Infer(unknown).field, "outputs[0].parameters.shared_memory_region");

  const SharedObject small("four");
  ASSERT_EQ(Register(small, "out"), StatusCode::OK);
  Share("out", 4, unknown.mutable_outputs(0));
  EXPECT_EQ(Infer(unknown).field, "outputs[0].parameters.shared_memory_region");
  EXPECT_EQ(small.Bytes(), "four");

  in.Truncate(100);
  EXPECT_EQ(Infer(SharedRequest()).field, kRegion);
  ModelInferRequest refused = SharedRequest();  // Before anything is read.
  (*refused.mutable_parameters())["priority"].set_string_param("high");
  EXPECT_EQ(Infer(refused).field, "parameters.priority");
  Answer(Fp32Request());
}

}  // namespace
}  // namespace sfmamba::kserve
