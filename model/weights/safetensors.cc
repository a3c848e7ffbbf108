#include "model/weights/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "model/weights/safetensors_header.h"

namespace sfmamba::weights {
namespace {

constexpr size_t kLengthBytes = 8;
// The maximum size of a header. The largest model's header is a hundredth of
// this.
constexpr uint64_t kMaxHeaderBytes = 10'000'000;

// The beginning of the text that Git LFS stores in place of a large file.
constexpr char kLfsPointer[] = "version ";

struct DTypeRow {
  DType dtype;
  absl::string_view name;
  int size;
};

constexpr DTypeRow kDTypes[] = {
    {DType::kBool, "BOOL", 1},      {DType::kU8, "U8", 1},
    {DType::kI8, "I8", 1},          {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E5M2, "F8_E5M2", 1}, {DType::kU16, "U16", 2},
    {DType::kI16, "I16", 2},        {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},      {DType::kU32, "U32", 4},
    {DType::kI32, "I32", 4},        {DType::kF32, "F32", 4},
    {DType::kU64, "U64", 8},        {DType::kI64, "I64", 8},
    {DType::kF64, "F64", 8},
};

const DTypeRow& RowOf(DType dtype) {
  return *std::find_if(std::begin(kDTypes), std::end(kDTypes),
                       [&](const DTypeRow& row) { return row.dtype == dtype; });
}

std::string Quoted(absl::string_view name) {
  return absl::StrCat("tensor \"",
                      absl::Utf8SafeCHexEscape(name.substr(0, 200)), "\"");
}

// Returns the size of a tensor in bytes, or -1 if it does not fit an int64.
int64_t ByteSize(const std::vector<int64_t>& shape, int element_size) {
  int64_t size = element_size;
  for (const int64_t dimension : shape) {
    if (__builtin_mul_overflow(size, dimension, &size)) return -1;
  }
  return size;
}

// Returns the tensor that `entry` describes. The file's data has `data_size`
// bytes and begins at `data`. If `data` is null, the data has not been read.
absl::StatusOr<TensorView> MakeView(const SafetensorsEntry& entry,
                                    const uint8_t* data, int64_t data_size) {
  const auto row = std::find_if(
      std::begin(kDTypes), std::end(kDTypes),
      [&](const DTypeRow& row) { return row.name == entry.dtype; });
  if (row == std::end(kDTypes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown type \"", absl::Utf8SafeCHexEscape(entry.dtype.substr(0, 50)),
        "\""));
  }
  if (entry.begin > entry.end || entry.end > data_size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("data_offsets [%d, %d] outside the %d bytes of data",
                        entry.begin, entry.end, data_size));
  }
  const int64_t size = ByteSize(entry.shape, row->size);
  if (size != entry.end - entry.begin) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s of shape [%s]: expected %s bytes, got %d", row->name,
        absl::StrJoin(entry.shape, ", "),
        size < 0 ? "fewer" : absl::StrCat(size), entry.end - entry.begin));
  }
  TensorView view{row->dtype, entry.shape, {}};
  if (data != nullptr) view.data = absl::MakeSpan(data + entry.begin, size);
  return view;
}

// Returns OK if the entries cover each of the `data_size` bytes exactly once.
absl::Status CheckCoverage(
    const std::map<std::string, SafetensorsEntry>& entries, size_t data_size) {
  using Item = std::pair<const std::string, SafetensorsEntry>;
  std::vector<const Item*> items;
  for (const Item& item : entries) items.push_back(&item);
  // An empty tensor begins where the next one begins. Therefore the ends are
  // compared, too.
  std::sort(items.begin(), items.end(), [](const Item* a, const Item* b) {
    return std::pair(a->second.begin, a->second.end) <
           std::pair(b->second.begin, b->second.end);
  });
  int64_t position = 0;
  for (const Item* item : items) {
    if (item->second.begin != position) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: expected to begin at byte %d of the data, got %d",
          Quoted(item->first), position, item->second.begin));
    }
    position = item->second.end;
  }
  if (position == data_size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "expected %d bytes of data, got %d", position, data_size));
}

// Returns the tensors that `header` lists. MakeView() explains `data`.
absl::StatusOr<std::map<std::string, TensorView>> ParseTensors(
    absl::string_view header, const uint8_t* data, int64_t data_size) {
  const auto entries = ParseSafetensorsHeader(header);
  if (!entries.ok()) return entries.status();
  std::map<std::string, TensorView> tensors;
  for (const auto& [name, entry] : *entries) {
    absl::StatusOr<TensorView> view = MakeView(entry, data, data_size);
    if (!view.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(name), ": ", view.status().message()));
    }
    tensors.emplace_hint(tensors.end(), name, *std::move(view));
  }
  const absl::Status covered = CheckCoverage(*entries, data_size);
  if (!covered.ok()) return covered;
  return tensors;
}

// A file that is read once, from its start.
class OpenFile {
 public:
  // Opens the file. Returns the errors of SafetensorsFile::Open(), but without
  // the file's name.
  static absl::StatusOr<OpenFile> Open(const std::string& path) {
    // With O_NONBLOCK, open() does not wait for a named pipe. Pipes are refused
    // below.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return absl::ErrnoToStatus(errno, "open");
    OpenFile file(fd);
    struct stat info;
    if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "stat");
    if (!S_ISREG(info.st_mode)) {
      return absl::InvalidArgumentError("expected a regular file");
    }
    file.left_ = info.st_size;
    return file;
  }

  OpenFile(OpenFile&& other)
      : fd_(std::exchange(other.fd_, -1)), left_(other.left_) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }

  // Returns the number of unread bytes. The size of the file is determined when
  // it is opened.
  int64_t left() const { return left_; }

  // Reads the next `size` bytes, at most left().
  absl::Status Read(uint8_t* to, int64_t size) {
    left_ -= size;
    while (size > 0) {
      const ssize_t got = read(fd_, to, size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return absl::ErrnoToStatus(errno, "read");
      if (got == 0) return absl::InvalidArgumentError("the file was truncated");
      to += got;
      size -= got;
    }
    return absl::OkStatus();
  }

  // Reads the header, which comes first.
  absl::StatusOr<std::string> ReadHeader() {
    uint8_t bytes[kLengthBytes];
    if (left_ < kLengthBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected at least ", kLengthBytes, " bytes, got ", left_));
    }
    absl::Status status = Read(bytes, kLengthBytes);
    if (!status.ok()) return status;
    if (std::equal(bytes, bytes + kLengthBytes, kLfsPointer)) {
      return absl::InvalidArgumentError(
          "got a Git LFS pointer, expected the file that it stands for: git "
          "lfs pull fetches it");
    }
    uint64_t length = 0;
    for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | bytes[i];
    // The length is not trusted. It must not exceed the rest of the file.
    const uint64_t limit = std::min<uint64_t>(left_, kMaxHeaderBytes);
    const absl::string_view text(reinterpret_cast<char*>(bytes), kLengthBytes);
    if (std::all_of(text.begin(), text.end(), [](unsigned char c) {
          return absl::ascii_isprint(c) || absl::ascii_isspace(c);
        })) {
      // Text that is read as a length gives more than 2^59, so this is no valid
      // header.
      return absl::InvalidArgumentError(absl::StrCat(
          "got text, such as a page of errors, that begins with \"",
          absl::CEscape(text), "\", expected safetensors"));
    }
    if (length > limit) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "header length: expected at most %d, got %d", limit, length));
    }
    std::string header(length, '\0');
    status = Read(reinterpret_cast<uint8_t*>(header.data()), length);
    if (!status.ok()) return status;
    return header;
  }

 private:
  explicit OpenFile(int fd) : fd_(fd) {}

  int fd_;
  int64_t left_ = 0;
};

// Returns the tensors of the file. Reads their data to `data` unless it is
// null.
absl::StatusOr<std::map<std::string, TensorView>> ReadTensors(
    const std::string& path, std::unique_ptr<uint8_t[]>* data) {
  absl::StatusOr<OpenFile> file = OpenFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::string> header = file->ReadHeader();
  if (!header.ok()) return header.status();
  const int64_t size = file->left();
  if (data == nullptr) return ParseTensors(*header, nullptr, size);
  data->reset(new (std::nothrow) uint8_t[size]);
  if (*data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", size, " bytes"));
  }
  // The header is checked before the data is read. If it does not fit the file,
  // no data is read.
  auto tensors = ParseTensors(*header, data->get(), size);
  if (!tensors.ok()) return tensors.status();
  const absl::Status status = file->Read(data->get(), size);
  if (!status.ok()) return status;
  return tensors;
}

// Adds the file's name to the error. The name has no folders, because clients
// see the error.
absl::Status OfFile(const std::string& path, const absl::Status& status) {
  return absl::Status(
      status.code(), absl::StrCat(path.substr(path.find_last_of('/') + 1), ": ",
                                  status.message()));
}

// Returns `text` as a JSON string.
std::string JsonQuote(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<uint8_t>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace

absl::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

int DTypeSize(DType dtype) { return RowOf(dtype).size; }

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(
    const std::string& path) {
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile());
  auto tensors = ReadTensors(path, &file->data_);
  if (!tensors.ok()) return OfFile(path, tensors.status());
  file->tensors_ = *std::move(tensors);
  return file;
}

absl::StatusOr<std::map<std::string, TensorView>> ReadSafetensorsShapes(
    const std::string& path) {
  auto tensors = ReadTensors(path, nullptr);
  if (!tensors.ok()) return OfFile(path, tensors.status());
  return tensors;
}

const TensorView* SafetensorsFile::Find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

absl::Status AddTensors(const std::map<std::string, TensorView>& file,
                        std::map<std::string, TensorView>* tensors) {
  for (const auto& [name, view] : file) {
    if (!tensors->emplace(name, view).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(name), ": in two files, expected it in one"));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteSafetensors(
    const std::string& path, const std::map<std::string, TensorView>& tensors) {
  std::vector<std::string> members;
  int64_t position = 0;
  for (const auto& [name, view] : tensors) {
    if (ByteSize(view.shape, DTypeSize(view.dtype)) != view.data.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(name), ": ", view.data.size(), " bytes do not fit its shape"));
    }
    const int64_t end = position + view.data.size();
    members.push_back(absl::StrFormat(
        R"(%s:{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]})",
        JsonQuote(name), DTypeName(view.dtype), absl::StrJoin(view.shape, ","),
        position, end));
    position = end;
  }
  std::string header = absl::StrCat("{", absl::StrJoin(members, ","), "}");
  header.resize((header.size() + 7) / 8 * 8, ' ');  // Aligns the data.
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (int shift = 0; shift < 64; shift += 8) {
    out.put(static_cast<char>(uint64_t{header.size()} >> shift));
  }
  out << header;
  for (const auto& [name, view] : tensors) {
    out.write(reinterpret_cast<const char*>(view.data.data()),
              view.data.size());
  }
  out.close();
  if (out) return absl::OkStatus();
  return OfFile(path, absl::ErrnoToStatus(errno, "write"));
}

}  // namespace sfmamba::weights
