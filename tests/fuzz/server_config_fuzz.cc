// Fuzzes the text of a server's settings. It must be refused with a reason or
// be usable. If accepted settings are printed, the printed text must be
// accepted as well.
#include <cstdint>
#include <string>

#include "google/protobuf/text_format.h"
#include "server/server_config.h"
#include "server/settings/textproto.h"
#include "sfmamba/v1/config.pb.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sfmamba::Check;
  namespace server = sfmamba::server;
  const auto check_refused = [](const absl::Status& status) {
    Check(status.code() == absl::StatusCode::kInvalidArgument,
          "settings are refused as an invalid argument");
    Check(!status.message().empty(), "with a reason");
  };
  sfmamba::v1::ServerConfig config;
  absl::Status status = server::ParseTextProto(
      "config", sfmamba::Input(data, size).text(), &config);
  if (!status.ok()) return check_refused(status), 0;
  const sfmamba::v1::ServerConfig whole = server::WithDefaults(config);
  status = server::Validate(whole);
  if (!status.ok()) return check_refused(status), 0;
  std::string text;
  Check(google::protobuf::TextFormat::PrintToString(whole, &text),
        "settings can be printed");
  sfmamba::v1::ServerConfig again;
  Check(server::ParseTextProto("config", text, &again).ok() &&
            server::Validate(again).ok(),
        "and used again");
  return 0;
}
