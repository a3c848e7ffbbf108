#include "client/commands/output/model_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands/output/text_table.h"

namespace sfmamba::client {
namespace {

std::string InputSizes(const v1::InputSpec& input) {
  return absl::StrJoin(input.buckets(), " ",
                       [](std::string* out, const v1::InputSpec::Size& size) {
                         absl::StrAppend(out, size.height(), "x", size.width());
                       });
}

}  // namespace

std::string StateText(const v1::Model& model) {
  std::string state = v1::Model::State_Name(model.state());
  if (!model.state_reason().empty()) {
    absl::StrAppend(&state, ": ", model.state_reason());
  }
  return state;
}

std::string ModelTable(const std::vector<v1::Model>& models) {
  TextTable table({"name", "labels", "task", "state", ">classes", "input",
                   ">max batch", ">weights MiB", "precision"});
  for (const v1::Model& model : models) {
    table.AddRow(
        {model.name(), absl::StrJoin(model.version_labels(), " "),
         v1::Model::Task_Name(model.task()), StateText(model),
         absl::StrCat(model.class_count()), InputSizes(model.input()),
         absl::StrCat(model.max_batch_size()),
         absl::StrFormat("%.1f", model.weights_size_bytes() / 1024.0 / 1024.0),
         model.precision()});
  }
  return table.ToString();
}

}  // namespace sfmamba::client
