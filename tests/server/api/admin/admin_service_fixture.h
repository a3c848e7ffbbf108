#ifndef SFMAMBA_TESTS_SERVER_API_ADMIN_ADMIN_SERVICE_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_API_ADMIN_ADMIN_SERVICE_FIXTURE_H_

#include <string>

#include "google/protobuf/text_format.h"
#include "grpcpp/grpcpp.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::api {

// A server with fake models. The tests change it with calls of AdminService.
class AdminServiceTest : public server::VisionServiceTest {
 protected:
  // Starts a server that loads and unloads models only if a call asks for it.
  void StartExplicit(v1::ServerConfig config = v1::ServerConfig()) {
    config.set_model_control("explicit");
    Start("", config);
  }

  template <typename Request, typename Response>
  server::Ending Ask(grpc::Status (v1::AdminService::Stub::*method)(
                         grpc::ClientContext*, const Request&, Response*),
                     const Request& request, Response* response,
                     grpc::ClientContext* context = nullptr) {
    const auto stub = v1::AdminService::NewStub(server_->channel());
    grpc::ClientContext own;
    if (context == nullptr) context = &own;
    return server::EndingOf(((*stub).*method)(context, request, response),
                            context);
  }
  server::Ending GetBatchProfile(const std::string& name,
                                 v1::BatchProfile* profile) {
    v1::GetBatchProfileRequest request;
    request.set_name(name);
    return Ask(&v1::AdminService::Stub::GetBatchProfile, request, profile);
  }
  server::Ending Load(const std::string& name,
                      v1::LoadModelResponse* response = nullptr) {
    v1::LoadModelRequest request;
    request.set_name(name);
    v1::LoadModelResponse own;
    return Ask(&v1::AdminService::Stub::LoadModel, request,
               response != nullptr ? response : &own);
  }
  server::Ending Unload(const std::string& name,
                        v1::UnloadModelResponse* response = nullptr) {
    v1::UnloadModelRequest request;
    request.set_name(name);
    v1::UnloadModelResponse own;
    return Ask(&v1::AdminService::Stub::UnloadModel, request,
               response != nullptr ? response : &own);
  }
  server::Ending Label(const std::string& model, const std::string& label,
                       int64_t version) {
    v1::SetVersionLabelRequest request;
    request.set_model(model);
    request.set_label(label);
    request.set_version(version);
    return Ask(&v1::AdminService::Stub::SetVersionLabel, request, &labelled_);
  }
  server::Ending Info(v1::ServerInfo* info) {
    return Ask(&v1::AdminService::Stub::GetServerInfo,
               v1::GetServerInfoRequest(), info);
  }
  server::Ending Update(const std::string& text,
                        v1::RuntimeSettings* settings) {
    v1::UpdateRuntimeSettingsRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request));
    return Ask(&v1::AdminService::Stub::UpdateRuntimeSettings, request,
               settings);
  }

  // Returns the version that answers a request for `model`. If the request
  // fails, returns the error's reason.
  std::string AnsweredBy(const std::string& model) {
    v1::ClassifyRequest request = server::GreyRequest(1);
    request.set_model(model);
    v1::ClassifyResponse response;
    const server::Ending ending = Classify(request, &response);
    return ending.code == grpc::StatusCode::OK ? response.model()
                                               : ending.reason;
  }

  v1::SetVersionLabelResponse labelled_;
};

}  // namespace sfmamba::api

#endif  // SFMAMBA_TESTS_SERVER_API_ADMIN_ADMIN_SERVICE_FIXTURE_H_
