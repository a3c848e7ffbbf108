#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/tuning/scan_plan_table.h"

// Defines the file of a ScanPlanTable. It has four lines that describe the
// device, a line with the columns' names, and a line for each entry. Single
// spaces separate the values of an entry.
namespace sfmamba::tuning {
namespace {

constexpr absl::string_view kFormat = "sfmamba fold table 1";
constexpr absl::string_view kColumns =
    "type channels states sequences length batch kernel threads lanes "
    "channels_per_thread rows items chunks microseconds";
constexpr int kColumnCount = 14;
constexpr size_t kMaxBytes = 1 << 18;
constexpr int kMaxName = 200;  // For the device's and the build's name.
constexpr int kMaxCount = 1 << 24;
constexpr double kMaxMicroseconds = 1e9;

// The words in the file for the values of the enumerations, in order.
constexpr absl::string_view kTypes[] = {"fp32", "fp16", "bf16"};
constexpr absl::string_view kBatches[] = {"uniform", "ragged"};
constexpr absl::string_view kKernels[] = {"lane", "fold", "chunk"};

std::string Found(absl::string_view text) {
  return absl::StrCat("got \"", absl::CHexEscape(text.substr(0, kMaxName)),
                      "\"");
}

absl::Status LineError(int line, absl::string_view what,
                       absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(
      "line ", line, ": ", what, ": expected ", expected, ", ", Found(found)));
}

// Parses digits without a leading zero. The value must be at most kMaxCount.
bool ParseCount(absl::string_view text, int* value) {
  if (text.empty() || text.size() > 8) return false;  // 8 digits fit an int.
  if (text.size() > 1 && text[0] == '0') return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return absl::SimpleAtoi(text, value) && *value <= kMaxCount;
}

// Parses digits with a decimal point, as Text() writes them.
bool ParseMicroseconds(absl::string_view text, double* value) {
  if (text.find_first_not_of("0123456789.") != text.npos) return false;
  if (!absl::ascii_isdigit(text.empty() ? ' ' : text[0])) return false;
  return absl::SimpleAtod(text, value) && *value > 0 &&
         *value <= kMaxMicroseconds;
}

bool IsName(absl::string_view text) {
  if (text.empty() || text.size() > kMaxName) return false;
  for (const char c : text) {
    if (!absl::ascii_isprint(c)) return false;
  }
  return text.front() != ' ' && text.back() != ' ';
}

// Reads the columns of one line from left to right. Stores only the first
// error.
class Row {
 public:
  Row(int line, absl::string_view text)
      : line_(line), columns_(absl::StrSplit(text, ' ')) {
    if (columns_.size() != kColumnCount) {
      error_ = LineError(line, "entry", absl::StrCat(kColumnCount, " columns"),
                         absl::StrCat(columns_.size(), " columns"));
    }
  }

  int Count(absl::string_view what, int least,
            int most = std::numeric_limits<int>::max()) {
    int value = 0;
    const absl::string_view text = Next();
    if (error_.ok() &&
        (!ParseCount(text, &value) || value < least || value > most)) {
      Fail(what,
           most == std::numeric_limits<int>::max()
               ? absl::StrCat("a whole number of at least ", least)
               : absl::StrCat("a whole number from ", least, " to ", most),
           text);
    }
    return value;
  }

  template <size_t kCount>
  int Word(absl::string_view what, const absl::string_view (&words)[kCount]) {
    const absl::string_view text = Next();
    const auto* found = std::find(std::begin(words), std::end(words), text);
    if (error_.ok() && found == std::end(words)) {
      Fail(what, absl::StrCat("one of ", absl::StrJoin(words, ", ")), text);
    }
    return found - std::begin(words);
  }

  double Microseconds() {
    double value = 0;
    const absl::string_view text = Next();
    if (error_.ok() && !ParseMicroseconds(text, &value)) {
      Fail("microseconds", "a decimal number above 0", text);
    }
    return value;
  }

  void Fail(absl::string_view what, absl::string_view expected,
            absl::string_view found) {
    if (error_.ok()) error_ = LineError(line_, what, expected, found);
  }

  const absl::Status& error() const { return error_; }

 private:
  absl::string_view Next() {
    return next_ < columns_.size() ? columns_[next_++] : absl::string_view();
  }

  const int line_;
  const std::vector<absl::string_view> columns_;
  size_t next_ = 0;
  absl::Status error_;
};

absl::StatusOr<ScanPlanTable::Entry> ParseEntry(int line,
                                                absl::string_view text) {
  Row row(line, text);
  ScanPlanTable::Entry entry;
  ScanShape& shape = entry.shape;
  shape.type = static_cast<ScanShape::Type>(row.Word("type", kTypes));
  shape.channels = row.Count("channels", 1);
  shape.states = row.Count("states", 1, 16);
  shape.sequences = row.Count("sequences", 1);
  shape.length = row.Count("length", 1);
  shape.ragged = row.Word("batch", kBatches) == 1;
  kernels::ScanPlan& plan = entry.plan;
  plan.kernel =
      static_cast<kernels::ScanPlan::Kernel>(row.Word("kernel", kKernels));
  plan.threads = row.Count("threads", 0);
  plan.lanes = row.Count("lanes", 0);
  plan.channels_per_thread = row.Count("channels_per_thread", 0);
  plan.rows = row.Count("rows", 0, shape.sequences);
  plan.items = row.Count("items", 0);
  plan.chunks = row.Count("chunks", 0, shape.length);
  entry.microseconds = row.Microseconds();
  if (!row.error().ok()) return row.error();
  const absl::Status valid = kernels::CheckScanPlan(plan);
  if (valid.ok()) return entry;
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ": ", valid.message()));
}

// Returns the value of a line "<key> <value>".
absl::StatusOr<std::string> ParseHeader(int line, absl::string_view key,
                                        absl::string_view text) {
  absl::string_view value = text;
  if (!absl::ConsumePrefix(&value, absl::StrCat(key, " ")) || !IsName(value)) {
    return LineError(line, "header", absl::StrCat("\"", key, " <", key, ">\""),
                     text);
  }
  return std::string(value);
}

absl::StatusOr<ScanDevice> ParseDevice(
    const std::vector<absl::string_view>& lines) {
  const auto name = ParseHeader(2, "device", lines[1]);
  if (!name.ok()) return name.status();
  const auto count = ParseHeader(3, "multiprocessors", lines[2]);
  if (!count.ok()) return count.status();
  const auto build = ParseHeader(4, "build", lines[3]);
  if (!build.ok()) return build.status();
  ScanDevice device{*name, 0, *build};
  if (!ParseCount(*count, &device.multiprocessors) ||
      device.multiprocessors < 1) {
    return LineError(3, "multiprocessors", "a whole number of at least 1",
                     *count);
  }
  return device;
}

std::string Line(const ScanPlanTable::Entry& entry) {
  const ScanShape& shape = entry.shape;
  const kernels::ScanPlan& plan = entry.plan;
  return absl::StrFormat("%s %d %d %d %d %s %s %d %d %d %d %d %d %.3f\n",
                         kTypes[shape.type], shape.channels, shape.states,
                         shape.sequences, shape.length, kBatches[shape.ragged],
                         kKernels[plan.kernel], plan.threads, plan.lanes,
                         plan.channels_per_thread, plan.rows, plan.items,
                         plan.chunks, entry.microseconds);
}

}  // namespace

absl::StatusOr<ScanPlanTable> ScanPlanTable::Parse(absl::string_view text) {
  constexpr int kHeader = 5;
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected at most ", kMaxBytes, " bytes, got ", text.size()));
  }
  if (!absl::ConsumeSuffix(&text, "\n")) {
    const size_t last = text.size() < 20 ? 0 : text.size() - 20;
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a newline at the end, ", Found(text.substr(last))));
  }
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines[0] != kFormat) {
    return LineError(1, "format", absl::StrCat("\"", kFormat, "\""), lines[0]);
  }
  if (lines.size() < kHeader) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected at least ", kHeader, " lines, got ", lines.size()));
  }
  const auto device = ParseDevice(lines);
  if (!device.ok()) return device.status();
  if (lines[4] != kColumns) {
    return LineError(5, "columns", absl::StrCat("\"", kColumns, "\""),
                     lines[4]);
  }
  ScanPlanTable table(*device);
  for (size_t i = kHeader; i < lines.size(); ++i) {
    const auto entry = ParseEntry(i + 1, lines[i]);
    if (!entry.ok()) return entry.status();
    const size_t before = table.entries_.size();
    table.Set(*entry);
    if (table.entries_.size() == before) {
      return LineError(i + 1, "entry", "one for each power of two of a shape",
                       ToString(entry->shape));
    }
  }
  return table;
}

absl::StatusOr<ScanPlanTable> ScanPlanTable::Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::ErrnoToStatus(errno, path);
  // Reads one byte more than allowed, so that Parse() refuses a file that is
  // too long.
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), text.size());
  if (in.bad()) return absl::ErrnoToStatus(errno, path);
  text.resize(in.gcount());
  auto table = Parse(text);
  if (table.ok()) return table;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", table.status().message()));
}

std::string ScanPlanTable::Text() const {
  std::string text = absl::StrCat(
      kFormat, "\ndevice ", device_.name, "\nmultiprocessors ",
      device_.multiprocessors, "\nbuild ", device_.build, "\n", kColumns, "\n");
  for (const Entry& entry : entries_) absl::StrAppend(&text, Line(entry));
  return text;
}

absl::Status ScanPlanTable::Write(const std::string& path) const {
  const auto failed = [](const std::string& name) {
    const int error = errno;  // StrCat() may change errno.
    return absl::ErrnoToStatus(error, absl::StrCat(name, ": write"));
  };
  // Writes the text to a temporary file and then renames it. A reader or a
  // crash therefore never sees half of the table.
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return failed(temporary);
  const std::string text = Text();
  const bool written =
      write(fd, text.data(), text.size()) == ssize_t(text.size()) &&
      // mkstemp() allows only this user to read the file, but other servers
      // must read the table, too.
      fchmod(fd, 0644) == 0 && fsync(fd) == 0;
  const absl::Status error = written ? absl::OkStatus() : failed(temporary);
  close(fd);
  if (error.ok() && rename(temporary.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const absl::Status status = error.ok() ? failed(path) : error;
  unlink(temporary.c_str());
  return status;
}

}  // namespace sfmamba::tuning
