// Prints docs/settings.md in Markdown. The page lists every setting of the
// server and of a model.

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "server/settings/setting.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

constexpr char kServer[] = R"(# Settings

Generated from `server_config.proto` and `config.proto` of `proto/sfmamba/v1` by `bazel run //tools:settings_page > docs/settings.md`.

## The server

Each setting is a flag, `--name=value`, and a field of the file that `--config` names (a `sfmamba.v1.ServerConfig` in protobuf
text format: `name: value`). A flag wins over the file. Both write durations as 30s and bytes as a number or as 64MiB (KiB, MiB, GiB).
`help`, `config` and the last section are flags only.
)";
constexpr char kModel[] = R"(
## A model

The fields of `<repository>/<id>/<version>/config.textproto`, a `sfmamba.v1.ModelConfig` in protobuf text format. A number that
is 0 where 0 is out of its range is unset. )";

// Returns a cell of a table with the separator after it.
std::string Cell(absl::string_view text) {
  if (text.empty()) return " |";
  return absl::StrCat(
      " ", absl::StrReplaceAll(text, {{"|", "\\|"}, {"<", "\\<"}}), " |");
}

constexpr char kHead[] =
    "| setting | default | range | meaning |\n"
    "|---|---|---|---|\n";

void AddRow(const FieldDescriptor& field, const std::string& prefix,
            std::string* page) {
  absl::StrAppend(page, "| `", prefix, field.name(), "` |",
                  Cell(DescribeDefault(field)), Cell(DescribeRange(field)),
                  Cell(SettingOf(field).help()), "\n");
}

// Adds a row for each field of `message`. The fields of a repeated group follow
// the group and have its name as a prefix.
void AddRows(const Descriptor& message, const std::string& prefix,
             std::string* page) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const bool is_group = IsGroup(field);
    if (is_group && !field.is_repeated()) continue;
    AddRow(field, prefix, page);
    if (is_group) {
      AddRows(*field.message_type(), prefix + field.name() + ".", page);
    }
  }
}

void AddTable(const Descriptor& message, std::string* page) {
  page->append(kHead);
  AddRows(message, "", page);
}

// Adds a section for each topic of the server's settings.
void AddServer(std::string* page) {
  for (const Topic& topic :
       ByTopic({v1::Command::descriptor(), v1::ServerConfig::descriptor()})) {
    absl::StrAppend(page, "\n### ", topic.title, "\n\n", kHead);
    for (const FieldDescriptor* field : topic.fields) {
      AddRow(*field, "", page);
    }
  }
}

// Lists the values of the enum `field` that have an explanation.
void AddMeanings(const FieldDescriptor& field, std::string* page) {
  std::string lines;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const auto& value = *field.enum_type()->value(i);
    const std::string& meaning = value.options().GetExtension(v1::meaning);
    if (meaning.empty()) continue;
    absl::StrAppend(&lines, "- `", value.name(), "`: ", meaning, "\n");
  }
  if (lines.empty()) return;
  absl::StrAppend(page, "\n`", field.name(), "`:\n\n", lines);
}

// Adds the table of `message`, its enums, and a section for each of its groups.
void AddModel(const Descriptor& message, std::string* page) {
  absl::StrAppend(page, message.options().GetExtension(v1::about), "\n\n");
  AddTable(message, page);
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i)->enum_type() != nullptr) {
      AddMeanings(*message.field(i), page);
    }
  }
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (!IsGroup(field) || field.is_repeated()) continue;
    absl::StrAppend(page, "\n### `", field.name(), "`\n\n",
                    SettingOf(field).help(), " ");
    AddModel(*field.message_type(), page);
  }
}

std::string SettingsPage() {
  std::string page = kServer;
  AddServer(&page);
  page += kModel;
  AddModel(*v1::ModelConfig::descriptor(), &page);
  return absl::StrReplaceAll(page, {{" \n", "\n"}});
}

}  // namespace
}  // namespace sfmamba::server

int main() {
  std::fputs(sfmamba::server::SettingsPage().c_str(), stdout);
  return 0;
}
