#ifndef SFMAMBA_SERVER_REST_METHOD_PATHS_H_
#define SFMAMBA_SERVER_REST_METHOD_PATHS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/call/method_table.h"

namespace sfmamba::rest {

// The paths of the methods that HTTP serves. Thread-safe.
class MethodPaths {
 public:
  // `methods` outlives this.
  explicit MethodPaths(const std::vector<call::Method>& methods);

  struct Match {
    const call::Method* method;
    const char* allowed;  // "GET, HEAD, OPTIONS".
    std::string field;    // The field that the path sets; empty: none.
    std::string value;

    bool Serves(absl::string_view http_method) const;
  };
  // Returns the method that `path` names, whatever the HTTP method; none if it
  // names none.
  std::optional<Match> Find(absl::string_view path) const;
  // Whether `path` lies where methods are, but need not name one.
  bool Covers(absl::string_view path) const;
  // The verbs that end a path for which Covers() is true, as an error lists
  // them: ":classify, :detect or :segment".
  std::string Verbs() const;

  // Returns the paths of OpenAPI by their names there: "@GetModel@" and, with a
  // version of a model, "@GetModel.version@".
  std::vector<std::pair<std::string, std::string>> OpenApiPaths() const;

 private:
  // "POST /v1/{model=models/**}:classify".
  struct Rule {
    const call::Method* method;
    bool is_read;        // GET.
    std::string before;  // "/v1/".
    std::string field;   // "model"; empty: `before` is the whole path.
    std::string folder;  // "models/".
    std::string after;   // ":classify".
  };
  static Rule Parse(const call::Method& method);

  std::vector<Rule> rules_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_METHOD_PATHS_H_
