#include "server/rest/query_fields.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "server/errors/reasons.h"
#include "server/settings/setting.h"

namespace sfmamba::rest {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The maximum number of bytes of a rejected name in an error message.
constexpr size_t kMaxShown = 64;

bool IsSettable(const FieldDescriptor& field) {
  return field.type() != FieldDescriptor::TYPE_BYTES && !server::IsGroup(field);
}

// Returns true if a field is a nested message and query parameters can set the
// fields of this message.
bool HasParameters(const FieldDescriptor& field) {
  // A picture's source is in a oneof. A source can be sent only in the body.
  return server::IsGroup(field) && !field.is_repeated() &&
         field.containing_oneof() == nullptr;
}

// Appends the names of the parameters for the fields of `type`. Each name
// starts with `prefix`. For a field that is a nested message, appends the names
// for the fields of this message, such as "crop.x_min". Appends nothing for a
// nested message if `messages` also contains a message of this type, because
// Names() already lists the fields of every message in `messages` without a
// prefix. For example, Names() lists "top_k" but not "params.top_k".
void AddNames(const Descriptor& type, const std::string& prefix,
              const std::vector<Message*>& messages,
              std::vector<std::string>* names) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string name = prefix + field.name();
    if (IsSettable(field)) {
      names->push_back(name);
    } else if (HasParameters(field) &&
               absl::c_none_of(messages, [&field](const Message* message) {
                 return message->GetDescriptor() == field.message_type();
               })) {
      AddNames(*field.message_type(), name + ".", messages, names);
    }
  }
}

// Returns the names of all parameters that can set fields of `messages`,
// separated by commas.
std::string Names(const std::vector<Message*>& messages) {
  std::vector<std::string> names;
  for (const Message* message : messages) {
    AddNames(*message->GetDescriptor(), "", messages, &names);
  }
  return absl::StrJoin(names, ", ");
}

struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;  // Null if the field was not found.
};

// Finds the field `name` of `message`. `name` may also be the name of a nested
// field, such as "crop.x_min". Creates the nested message if needed.
Place Find(absl::string_view name, Message* message) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('.', 1));
  const std::string first(parts.first);
  const auto& type = *message->GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName(first);
  if (field == nullptr) field = type.FindFieldByCamelcaseName(first);
  if (field == nullptr) return {};
  if (first.size() == name.size()) {
    return IsSettable(*field) ? Place{message, field} : Place{};
  }
  if (!HasParameters(*field)) return {};
  return Find(parts.second,
              message->GetReflection()->MutableMessage(message, field));
}

}  // namespace

absl::Status SetFromQuery(const std::multimap<std::string, std::string>& query,
                          const std::vector<Message*>& messages) {
  std::set<const FieldDescriptor*> seen;
  for (const auto& [name, text] : query) {
    Place place;
    for (Message* message : messages) {
      place = Find(name, message);
      if (place.field != nullptr) break;
    }
    const std::string shown =
        absl::CHexEscape(absl::string_view(name).substr(0, kMaxShown));
    if (place.field == nullptr) {
      return server::InvalidField(
          shown,
          messages.empty()
              ? "got a parameter, expected none"
              : absl::StrCat("there is no such parameter, expected one of ",
                             Names(messages)));
    }
    if (!place.field->is_repeated() && !seen.insert(place.field).second) {
      return server::InvalidField(shown, "got it twice, expected it once");
    }
    const absl::Status status =
        server::AddFromText(*place.field, text, place.message);
    if (!status.ok()) return server::InvalidField(shown, status.message());
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::rest
