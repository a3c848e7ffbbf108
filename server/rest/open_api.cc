#include "server/rest/open_api.h"

#include "absl/strings/str_replace.h"
#include "server/rest/open_api_text.h"

namespace sfmamba::rest {

std::string OpenApi(const MethodPaths& paths, absl::string_view version) {
  std::string text =
      absl::StrReplaceAll(kOpenApiText, {{"@VERSION@", version}});
  absl::StrReplaceAll(paths.OpenApiPaths(), &text);
  return text;
}

}  // namespace sfmamba::rest
