#include "client/commands/command.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/rpc/rpc_status.h"

namespace sfmamba::client {

void CommonFlags::AddTo(FlagSet* flags) {
  flags->Add("server", "HOST:PORT", "where the server listens", &server);
  flags->Add("deadline", "DURATION", "time allowed for a request", &deadline);
  flags->Add("json", "", "write JSON", &json);
  flags->Add("tls", "", "speak TLS", &access_.tls);
  flags->Add("tls_ca", "FILE",
             "who signs the server's certificate; empty: the system's trusted",
             &access_.ca_file);
  flags->Add("tls_cert", "FILE", "the certificate that the client shows",
             &access_.cert_file);
  flags->Add("tls_key", "FILE", "its private key", &access_.key_file);
  flags->Add("tls_server_name", "NAME",
             "what the server's certificate is for; empty: the host",
             &access_.server_name);
  flags->Add("token_file", "FILE",
             "the token that each call shows; empty: the environment's "
             "SFMAMBA_TOKEN, if any",
             &access_.token_file);
  flags->Add("plaintext_token", "",
             "send the token without --tls to other machines too",
             &access_.plaintext_token);
  flags->AddCheck([this] {
    const char* const token = std::getenv("SFMAMBA_TOKEN");
    if (token != nullptr) access_.token = token;
    absl::StatusOr<ServerAccess> access = OpenAccess(server, access_);
    if (access.ok()) client.access = *std::move(access);
    return access.status();
  });
}

absl::optional<int> ParseArguments(FlagSet* flags,
                                   const std::vector<std::string>& arguments,
                                   std::vector<std::string>* positional,
                                   const Console& console) {
  absl::StatusOr<std::vector<std::string>> parsed = flags->Parse(arguments);
  if (!parsed.ok()) return UsageError(parsed.status().message(), console);
  if (flags->help_requested()) {
    console.out << flags->Help();
    return kExitOk;
  }
  *positional = *std::move(parsed);
  return absl::nullopt;
}

void WriteErrorLine(absl::string_view message, const Console& console) {
  std::string line(message);
  std::replace_if(line.begin(), line.end(), absl::ascii_iscntrl, ' ');
  console.err << "sfmamba: " << line << "\n";
}

int UsageError(absl::string_view message, const Console& console) {
  WriteErrorLine(message, console);
  console.err << "'sfmamba help VERB' tells how a verb is used\n";
  return kExitUsage;
}

int RpcError(const absl::Status& status, const CommonFlags& flags,
             const Console& console) {
  const bool names_server = absl::StrContains(status.message(), flags.server);
  WriteErrorLine(absl::StrCat(names_server ? "" : flags.server + ": ",
                              DescribeRpcError(status)),
                 console);
  if (flags.json) {
    JsonWriter json;
    json.BeginObject();
    WriteError(status, &json);
    console.out << json.EndObject().text() << "\n";
  }
  return kExitRpcError;
}

int FinishOutput(int exit_code, const Console& console) {
  if (console.out.flush()) return exit_code;
  WriteErrorLine("cannot write all of the output", console);
  return exit_code == kExitOk ? kExitUsage : exit_code;
}

void WriteError(const absl::Status& status, JsonWriter* json) {
  const RpcErrorDetails details = GetRpcErrorDetails(status);
  json->Key("error").BeginObject();
  json->Key("code").String(absl::StatusCodeToString(status.code()));
  json->Key("reason").String(details.reason);
  json->Key("message").String(status.message());
  json->Key("fields").BeginArray();
  for (const std::string& field : details.fields) json->String(field);
  json->EndArray();
  if (details.retry_delay.has_value()) {
    json->Key("retry_delay_ms")
        .Number(absl::ToDoubleMilliseconds(*details.retry_delay));
  }
  const std::string trace = TraceIdOf(details);
  if (!trace.empty()) json->Key("trace_id").String(trace);
  json->EndObject();
}

std::string FormatMilliseconds(absl::Duration duration) {
  return absl::StrFormat("%.2f ms", absl::ToDoubleMilliseconds(duration));
}

}  // namespace sfmamba::client
