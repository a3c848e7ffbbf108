#include "server/settings/textproto.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace sfmamba::server {
namespace {

// Some editors of Windows begin UTF-8 with it.
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = line < 0 ? message
                     : absl::StrCat("line ", line + 1, ", column ", column + 1,
                                    ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

absl::Status ParseTextProto(absl::string_view what, const std::string& text,
                            google::protobuf::Message* message) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, message)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", error.text()));
}

absl::StatusOr<std::string> ReadTextFile(absl::string_view what,
                                         const std::string& path,
                                         size_t max_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(max_bytes + 1, '\0');
  if (!file.read(text.data(), text.size()) && !file.eof()) {
    return absl::NotFoundError(
        absl::StrCat(what, ": got \"", std::strerror(errno),
                     "\", expected a file that can be read"));
  }
  text.resize(file.gcount());
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": got more than ", max_bytes, " bytes, expected at most that"));
  }
  if (absl::StartsWith(text, kByteOrderMark)) {
    text.erase(0, kByteOrderMark.size());
  }
  return text;
}

}  // namespace sfmamba::server
