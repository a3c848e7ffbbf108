#include "model/weights/safetensors_header.h"

#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sfmamba::weights {
namespace {

using Entries = std::map<std::string, SafetensorsEntry>;

// Returns the length in bytes of the UTF-8 character with which `text` begins.
// Returns 0 if the character is invalid (overlong, a surrogate, above U+10FFFF,
// or truncated).
// `text` must not be empty.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return length;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto tail = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3f)));
  };
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xf0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

// A recursive-descent parser for the header's grammar. Each method consumes its
// part of the text. At the first invalid byte it records the error and returns
// false.
class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  bool Header(Entries* entries) {
    bool metadata = false;
    const auto member = [&](const std::string& name) {
      if (name == "__metadata__") {
        if (metadata) return Fail("__metadata__ twice");
        metadata = true;
        return Metadata();
      }
      const auto [entry, is_new] = entries->emplace(name, SafetensorsEntry());
      tensor_ = name;
      // A name that occurs twice is refused. JSON readers differ in which of
      // the two they use.
      if (!is_new) return Fail("twice");
      if (!Entry(&entry->second)) return false;
      tensor_.clear();
      return true;
    };
    if (Peek() != '{') return Fail("expected '{'");
    if (!Object(member)) return false;
    SkipSpace();
    return position_ == text_.size() || Fail("bytes after the object");
  }

  absl::Status error() const {
    return absl::InvalidArgumentError(absl::StrCat(
        tensor_.empty()
            ? ""
            : absl::StrCat("tensor \"",
                           absl::Utf8SafeCHexEscape(tensor_.substr(0, 200)),
                           "\": "),
        error_, " (header byte ", position_, ")"));
  }

 private:
  bool Fail(absl::string_view why) {
    error_ = std::string(why);
    return false;
  }

  char Peek() const { return position_ < text_.size() ? text_[position_] : 0; }

  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' ||
           Peek() == '\r') {
      ++position_;
    }
  }

  // Skips white space and consumes `c`.
  bool Expect(char c) {
    SkipSpace();
    if (Peek() != c) return Fail(absl::StrFormat("expected '%c'", c));
    ++position_;
    return true;
  }

  bool Accept(char c) {
    SkipSpace();
    if (Peek() != c) return false;
    ++position_;
    return true;
  }

  // Parses an object. For each member, parses the name and the colon. Then
  // calls member(name), which must parse the value and returns false on an
  // error.
  template <typename Member>
  bool Object(Member member) {
    if (!Expect('{')) return false;
    if (Accept('}')) return true;
    do {
      std::string name;
      if (!String(&name) || !Expect(':') || !member(name)) return false;
    } while (Accept(','));
    return Expect('}');
  }

  bool Metadata() {
    return Object([this](const std::string&) {
      std::string ignored;
      return String(&ignored);
    });
  }

  bool Entry(SafetensorsEntry* entry) {
    bool dtype = false, shape = false, offsets = false;
    const auto once = [this](bool* seen, const std::string& name) {
      if (*seen) return Fail(absl::StrCat(name, " twice"));
      return *seen = true;
    };
    const auto member = [&](const std::string& name) {
      if (name == "dtype") return once(&dtype, name) && String(&entry->dtype);
      if (name == "shape") {
        return once(&shape, name) && Integers(kMaxRank, &entry->shape);
      }
      if (name != "data_offsets") return Fail("expected a known member name");
      std::vector<int64_t> range;
      if (!once(&offsets, name) || !Integers(2, &range)) return false;
      if (range.size() != 2) return Fail("data_offsets: expected two numbers");
      entry->begin = range[0];
      entry->end = range[1];
      return true;
    };
    if (!Object(member)) return false;
    return (dtype && shape && offsets) ||
           Fail("expected dtype, shape and data_offsets");
  }

  bool Integers(size_t max_count, std::vector<int64_t>* out) {
    if (!Expect('[')) return false;
    if (Accept(']')) return true;
    do {
      if (out->size() == max_count) {
        return Fail(absl::StrCat("expected at most ", max_count, " numbers"));
      }
      if (!Integer(&out->emplace_back())) return false;
    } while (Accept(','));
    return Expect(']');
  }

  bool Integer(int64_t* out) {
    SkipSpace();
    const size_t start = position_;
    *out = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      const int digit = Peek() - '0';
      // The sum below must not overflow, because overflow of a signed integer
      // is undefined behaviour.
      if (*out > (std::numeric_limits<int64_t>::max() - digit) / 10) {
        return Fail("number too large");
      }
      *out = *out * 10 + digit;
      ++position_;
    }
    if (position_ == start) return Fail("expected a whole number");
    if (text_[start] == '0' && position_ - start > 1) {
      return Fail("number with a leading zero");
    }
    return true;
  }

  bool String(std::string* out) {
    if (!Expect('"')) return false;
    while (position_ < text_.size() && Peek() != '"') {
      if (static_cast<uint8_t>(Peek()) < 0x20) {
        return Fail("control character in a string");
      }
      if (Peek() == '\\') {
        if (!Escape(out)) return false;
        continue;
      }
      const size_t length = Utf8Length(text_.substr(position_));
      if (length == 0) return Fail("invalid UTF-8");
      out->append(text_.data() + position_, length);
      position_ += length;
    }
    return Expect('"');
  }

  bool Escape(std::string* out) {
    static constexpr absl::string_view kFrom = "\"\\/bfnrt";
    static constexpr absl::string_view kTo = "\"\\/\b\f\n\r\t";
    ++position_;  // The backslash.
    if (Peek() == 'u') return UnicodeEscape(out);
    const size_t which = Peek() == 0 ? kFrom.npos : kFrom.find(Peek());
    if (which == kFrom.npos) return Fail("invalid escape");
    out->push_back(kTo[which]);
    ++position_;
    return true;
  }

  bool UnicodeEscape(std::string* out) {
    uint32_t code = 0;
    if (!Hex4(&code)) return false;
    if (code >= 0xdc00 && code < 0xe000) return Fail("lone surrogate");
    if (code >= 0xd800 && code < 0xdc00) {
      uint32_t low = 0;
      if (Peek() != '\\') return Fail("lone surrogate");
      ++position_;
      if (Peek() != 'u') return Fail("lone surrogate");
      if (!Hex4(&low)) return false;
      if (low < 0xdc00 || low >= 0xe000) return Fail("lone surrogate");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    AppendUtf8(code, out);
    return true;
  }

  bool Hex4(uint32_t* code) {
    ++position_;  // The u.
    for (int i = 0; i < 4; ++i, ++position_) {
      const char c = Peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return Fail("expected four hexadecimal digits");
      *code = *code * 16 + digit;
    }
    return true;
  }

  absl::string_view text_;
  size_t position_ = 0;
  std::string tensor_;  // The tensor being read, for messages.
  std::string error_;
};

}  // namespace

absl::StatusOr<Entries> ParseSafetensorsHeader(absl::string_view header) {
  Entries entries;
  Parser parser(header);
  if (!parser.Header(&entries)) return parser.error();
  return entries;
}

}  // namespace sfmamba::weights
