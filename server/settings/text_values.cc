#include "server/settings/text_values.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "server/settings/setting.h"

namespace sfmamba::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// The maximum nesting depth. Values in more deeply nested messages are not
// replaced.
constexpr int kMostDepth = 32;

bool IsName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

bool IsSize(const FieldDescriptor& field) {
  return SettingOf(field).unit() == "bytes";
}

// Copies a message in text form. In the copy, durations and sizes are replaced
// by values that protobuf's parser accepts.
class Rewriter {
 public:
  explicit Rewriter(absl::string_view text) : in_(text) {}

  absl::StatusOr<PlainText> Run(const Descriptor& message) {
    const absl::Status status = Fields(message, /*depth=*/0);
    if (!status.ok()) return status;
    Copy(in_.size());
    return std::move(out_);
  }

 private:
  char Peek() const { return at_ < in_.size() ? in_[at_] : '\0'; }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }

  void SkipSpace() {
    while (at_ < in_.size() &&
           (absl::ascii_isspace(in_[at_]) || in_[at_] == ',' ||
            in_[at_] == ';' || in_[at_] == '#')) {
      if (in_[at_] == '#') {
        at_ = std::min(in_.find('\n', at_), in_.size());
      } else {
        ++at_;
      }
    }
  }

  // Reads one quoted string or one word.
  absl::string_view Value() {
    const size_t begin = at_;
    const char quote = Peek();
    if (quote == '"' || quote == '\'') {
      for (++at_; at_ < in_.size() && in_[at_] != quote; ++at_) {
        if (in_[at_] == '\\') ++at_;
      }
      at_ = std::min(at_ + 1, in_.size());
    } else {
      while (IsName(Peek()) || Peek() == '.' || Peek() == '-' ||
             Peek() == '+') {
        ++at_;
      }
    }
    return in_.substr(begin, at_ - begin);
  }

  // Copies the input from offset copied_ up to offset `end`.
  void Copy(size_t end) {
    absl::StrAppend(&out_.text, in_.substr(copied_, end - copied_));
    copied_ = end;
  }

  // Reads the fields of a message up to the closing bracket or the end of the
  // text. Stops at unexpected text and sets broken_, so that protobuf's parser
  // reports the error.
  absl::Status Fields(const Descriptor& message, int depth) {
    for (SkipSpace(); IsName(Peek()) && !broken_; SkipSpace()) {
      const size_t begin = at_;
      while (IsName(Peek())) ++at_;
      const FieldDescriptor* const field =
          message.FindFieldByName(std::string(in_.substr(begin, at_ - begin)));
      if (field == nullptr || depth == kMostDepth) break;
      SkipSpace();
      Take(':');
      SkipSpace();
      absl::Status status;
      if (Take('[')) {
        for (SkipSpace(); !Take(']') && !broken_ && status.ok(); SkipSpace()) {
          status = OneValue(*field, depth);
        }
      } else {
        status = OneValue(*field, depth);
      }
      if (!status.ok()) return status;
    }
    if (!Take('}') && !Take('>')) broken_ = true;
    return absl::OkStatus();
  }

  absl::Status OneValue(const FieldDescriptor& field, int depth) {
    if (Take('{') || Take('<')) {
      if (field.message_type() == nullptr) {
        broken_ = true;
        return absl::OkStatus();
      }
      return Fields(*field.message_type(), depth + 1);
    }
    const size_t begin = at_;
    const absl::string_view value = Value();
    if (value.empty()) broken_ = true;
    const bool is_duration = field.message_type() != nullptr && !IsGroup(field);
    const bool has_form = is_duration || IsSize(field);
    if (broken_ || !has_form) return absl::OkStatus();
    return Replace(field, begin, value);
  }

  absl::Status Replace(const FieldDescriptor& field, size_t begin,
                       absl::string_view value) {
    absl::string_view bare = value;
    if (bare.front() == '"' || bare.front() == '\'') {
      bare = bare.substr(1, bare.size() - 2);
    }
    const std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(field.containing_type())
            ->New());
    const absl::Status status = SetFromText(field, bare, message.get());
    if (!status.ok()) {
      const size_t line_begin = in_.substr(0, begin).rfind('\n') + 1;
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", Line(in_.substr(0, begin)) + 1, ", column ",
          begin - line_begin + 1, ": ", field.name(), ": ", status.message()));
    }
    std::string plain;
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.PrintFieldValueToString(*message, &field, -1, &plain);
    if (field.message_type() != nullptr) plain = absl::StrCat("{ ", plain, "}");
    Copy(begin);
    absl::StrAppend(&out_.text, plain);
    copied_ = at_;
    const size_t line_begin = out_.text.rfind('\n') + 1;
    out_.changes.push_back(
        {Line(out_.text), static_cast<int>(out_.text.size() - line_begin),
         static_cast<int>(plain.size()) - static_cast<int>(value.size())});
    return absl::OkStatus();
  }

  static int Line(absl::string_view before) {
    return static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  }

  const absl::string_view in_;
  size_t at_ = 0;
  size_t copied_ = 0;    // The number of copied bytes of in_.
  bool broken_ = false;  // True after unexpected text.
  PlainText out_;
};

}  // namespace

int PlainText::OriginalColumn(int line, int column) const {
  int longer = 0;
  for (const Change& change : changes) {
    if (change.line == line && change.column <= column) longer += change.longer;
  }
  return std::max(0, column - longer);
}

absl::StatusOr<PlainText> WithPlainValues(const std::string& text,
                                          const Descriptor& message) {
  return Rewriter(text).Run(message);
}

}  // namespace sfmamba::server
