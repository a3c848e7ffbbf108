#ifndef SFMAMBA_SERVER_REST_METHOD_PATHS_H_
#define SFMAMBA_SERVER_REST_METHOD_PATHS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/call/method_table.h"

namespace sfmamba::rest {

// The fields of a request that a path sets, and their values.
using PathFields = std::vector<std::pair<std::string, std::string>>;

// The paths of the methods that HTTP serves. Thread-safe.
class MethodPaths {
 public:
  // `methods` outlives this.
  explicit MethodPaths(const std::vector<call::Method>& methods);

  struct Match {
    const call::Method* method;
    PathFields fields;
    bool is_served;       // Whether the path serves the HTTP method.
    std::string allowed;  // What it serves: "GET, HEAD, OPTIONS".
  };
  // Returns the method that a request means, none if no method has the path. If
  // the path does not serve `http_method`, the first method that has the path.
  std::optional<Match> Find(absl::string_view http_method,
                            absl::string_view path) const;
  // Whether `path` lies where models are, but need not name a method.
  bool Covers(absl::string_view path) const;
  // The verbs that end a path for which Covers() is true, as an error lists
  // them: ":classify, :detect or :segment".
  std::string Verbs() const;

  // Returns the paths of OpenAPI by their names there: "@GetModel@" and, with a
  // version of a model, "@GetModel.version@".
  std::vector<std::pair<std::string, std::string>> OpenApiPaths() const;

 private:
  // "POST,PUT /v1/{model=models/**}:classify".
  struct Rule {
    const call::Method* method;
    std::vector<std::string> http_methods;  // "POST", "PUT"; HEAD beside GET.
    // "/v1/", "model=models/**", ":classify": every other one is a variable.
    std::vector<std::string> pieces;

    // Whether the path matches. Then `fields` has its variables.
    bool Matches(absl::string_view path, PathFields* fields) const;
    // What "**" begins with, "models/"; empty if there is none.
    absl::string_view Folder() const;
  };

  std::vector<Rule> rules_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_METHOD_PATHS_H_
