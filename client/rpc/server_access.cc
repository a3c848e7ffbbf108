#include "client/rpc/server_access.h"

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/rpc/server_address.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/client_interceptor.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace sfmamba::client {
namespace {

using grpc::experimental::InterceptionHookPoints;

absl::Status Wrong(absl::string_view flag, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", what));
}

// Reads the whole file at `path` into `text`. Does nothing if `path` is empty.
// `flag` is the command-line flag that contains the path. Errors name the flag.
absl::Status Read(absl::string_view flag, const std::string& path,
                  std::string* text) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  text->assign(std::istreambuf_iterator<char>(file), {});
  if (file && !text->empty()) return absl::OkStatus();
  return Wrong(flag, absl::StrCat("got '", path,
                                  "', which cannot be read or is empty, "
                                  "expected a file with text"));
}

struct OpenSslFreer {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using OpenSsl = std::unique_ptr<T, OpenSslFreer>;

OpenSsl<BIO> Reader(const std::string& pem) {
  return OpenSsl<BIO>(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Returns an empty password, so that OpenSSL does not ask for one on the
// terminal.
int NoPassword(char*, int, int, void*) { return 0; }

// Returns an error unless certificate and key can be read and belong together.
// Without this check each call would end with an error of gRPC that names
// neither file.
absl::Status CheckKeyPair(const ServerAccess& access,
                          const AccessOptions& options) {
  const auto wrong = [](absl::string_view flag, const std::string& file,
                        absl::string_view what) {
    // Otherwise, later users of OpenSSL on this thread would find the error.
    ERR_clear_error();
    return Wrong(flag, absl::StrCat("got '", file, "', ", what));
  };
  if (options.cert_file.empty()) return absl::OkStatus();
  const OpenSsl<X509> certificate(PEM_read_bio_X509(
      Reader(access.certificate).get(), nullptr, NoPassword, nullptr));
  if (certificate == nullptr) {
    return wrong("tls_cert", options.cert_file,
                 "which is none, expected a certificate in PEM");
  }
  const OpenSsl<EVP_PKEY> key(PEM_read_bio_PrivateKey(
      Reader(access.private_key).get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return wrong("tls_key", options.key_file,
                 "which is none, expected a private key in PEM without a "
                 "password");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return wrong("tls_key", options.key_file,
                 absl::StrCat("which is of another certificate, expected the "
                              "key of --tls_cert, '",
                              options.cert_file, "'"));
  }
  return absl::OkStatus();
}

// Returns true if an HTTP header may contain `token`. Any other token would
// make each call fail with an unclear error of gRPC.
bool IsHeaderText(absl::string_view token) {
  for (const char c : token) {
    if (!absl::ascii_isgraph(c)) return false;
  }
  return true;
}

// Adds the token to each call. gRPC's own call credentials would need a secure
// channel.
class TokenInterceptor final : public grpc::experimental::Interceptor {
 public:
  explicit TokenInterceptor(const std::string& header) : header_(header) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", header_);
    }
    methods->Proceed();
  }

 private:
  const std::string& header_;
};

class TokenInterceptors final
    : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptors(const std::string& token)
      : header_(absl::StrCat("Bearer ", token)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(header_);
  }

 private:
  const std::string header_;
};

}  // namespace

absl::StatusOr<ServerAccess> OpenAccess(absl::string_view server,
                                        const AccessOptions& options) {
  absl::Status status = CheckServer(server);
  ServerAccess access;
  access.tls = options.tls;
  access.server_name = options.server_name;
  status.Update(Read("tls_ca", options.ca_file, &access.roots));
  status.Update(Read("tls_cert", options.cert_file, &access.certificate));
  status.Update(Read("tls_key", options.key_file, &access.private_key));
  status.Update(Read("token_file", options.token_file, &access.token));
  if (!status.ok()) return status;
  if (options.cert_file.empty() != options.key_file.empty()) {
    return Wrong("tls_cert", "got one of it and --tls_key, expected both");
  }
  if (!options.tls) {
    for (const auto& [flag, value] :
         {std::pair("tls_ca", options.ca_file),
          std::pair("tls_cert", options.cert_file),
          std::pair("tls_server_name", options.server_name)}) {
      if (!value.empty())
        return Wrong(flag, "got it without --tls, expected both");
    }
  }
  status = CheckKeyPair(access, options);
  if (!status.ok()) return status;
  if (options.token_file.empty()) access.token = options.token;
  access.token = std::string(absl::StripAsciiWhitespace(access.token));
  if (!IsHeaderText(access.token)) {
    return Wrong("token_file",
                 "got a token with spaces or bytes that are not ASCII, "
                 "expected neither");
  }
  if (!access.token.empty() && !options.tls && !options.plaintext_token &&
      !IsLoopback(server)) {
    return Wrong("tls", absl::StrCat("got a token for ", server,
                                     " without it: others could read the "
                                     "token; --plaintext_token sends it"));
  }
  return access;
}

std::shared_ptr<grpc::Channel> MakeChannel(absl::string_view server,
                                           const ServerAccess& access,
                                           grpc::ChannelArguments arguments) {
  const std::string target = TargetOf(server);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, IsLoopback(server) ? 0 : 1);
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (access.tls) {
    credentials = grpc::SslCredentials(
        {access.roots, access.private_key, access.certificate});
    if (!access.server_name.empty()) {
      arguments.SetSslTargetNameOverride(access.server_name);
    }
  }
  if (access.token.empty()) {
    return grpc::CreateCustomChannel(target, credentials, arguments);
  }
  std::vector<
      std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
      interceptors;
  interceptors.push_back(std::make_unique<TokenInterceptors>(access.token));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      target, credentials, arguments, std::move(interceptors));
}

}  // namespace sfmamba::client
