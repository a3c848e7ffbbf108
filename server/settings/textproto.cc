#include "server/settings/textproto.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "server/settings/removed_settings.h"
#include "server/settings/text_values.h"

namespace sfmamba::server {
namespace {

// Some Windows editors write these bytes at the start of a UTF-8 file.
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Git LFS replaces a large file with a small pointer file, which starts with
// this text.
constexpr absl::string_view kLfsPointer =
    "version https://git-lfs.github.com/spec/";

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const PlainText& plain) : plain_(plain) {}

  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = line < 0 ? message
                     : absl::StrCat("line ", line + 1, ", column ",
                                    plain_.OriginalColumn(line, column) + 1,
                                    ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  const PlainText& plain_;
  std::string text_;
};

}  // namespace

absl::Status ParseTextProto(absl::string_view what, const std::string& text,
                            google::protobuf::Message* message) {
  const absl::StatusOr<PlainText> plain =
      WithPlainValues(text, *message->GetDescriptor());
  if (!plain.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", plain.status().message()));
  }
  FirstError error(*plain);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(plain->text, message)) return absl::OkStatus();
  std::string said = absl::StrCat(what, ": ", error.text());
  // The parser's error contains the name of an unknown field in quotes.
  for (const absl::string_view part : absl::StrSplit(error.text(), '"')) {
    const std::string removed = WhyRemoved(part);
    if (!removed.empty()) absl::StrAppend(&said, " ", removed);
  }
  return absl::InvalidArgumentError(said);
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
  if (absl::StartsWith(text, kLfsPointer)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what,
                     ": is a Git LFS pointer, expected the file that it stands "
                     "for; git lfs pull fetches it"));
  }
  if (absl::StartsWith(text, kByteOrderMark)) {
    text.erase(0, kByteOrderMark.size());
  }
  return text;
}

}  // namespace sfmamba::server
