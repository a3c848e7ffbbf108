#ifndef SFMAMBA_SERVER_REST_METHOD_PATHS_H_
#define SFMAMBA_SERVER_REST_METHOD_PATHS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/call/method_table.h"

namespace sfmamba::rest {

// The names and values of the request fields that the HTTP path sets.
using PathFields = std::vector<std::pair<std::string, std::string>>;

// Finds the RPC method (a call::Method) for an HTTP path. Thread-safe.
class MethodPaths {
 public:
  // `methods` must outlive this object.
  explicit MethodPaths(const std::vector<call::Method>& methods);

  struct Match {
    const call::Method* method;
    PathFields fields;
    bool is_served;  // True if the path supports the HTTP method.
    // The HTTP methods that the path supports, such as "GET, HEAD, OPTIONS".
    std::string allowed;
  };
  // Returns the method for a request, or nullopt if no method has this path. If
  // no method with this path supports `http_method`, returns the first method
  // with the path and sets `is_served` to false.
  std::optional<Match> Find(absl::string_view http_method,
                            absl::string_view path) const;
  // Returns true if `path` starts with the common prefix of model paths, such
  // as /v1/models/. The path need not belong to a method.
  bool Covers(absl::string_view path) const;
  // Returns the verbs of all methods about a model, for an error message. A
  // verb is the end of a path after the model's name. An example of the
  // returned text is ":classify, :detect or :segment".
  std::string Verbs() const;

  // Returns pairs of a placeholder and a path. The OpenAPI description contains
  // placeholders, such as "@GetModel@", that OpenApi() replaces with these
  // paths. The placeholder of a path with a model version has the form
  // "@GetModel.version@".
  std::vector<std::pair<std::string, std::string>> OpenApiPaths() const;

 private:
  // A parsed path template, such as "POST,PUT /v1/{model=models/**}:classify".
  struct Rule {
    const call::Method* method;
    // The HTTP methods, such as "POST" and "PUT". GET implies HEAD.
    std::vector<std::string> http_methods;
    // The parts of the template, which is split at its braces. The parts are,
    // for example, "/v1/", "model=models/**" and ":classify". Every second part
    // is a variable.
    std::vector<std::string> pieces;

    // If the path matches the template, returns true and adds the values of the
    // variables to `fields`. If it does not match, returns false.
    bool Matches(absl::string_view path, PathFields* fields) const;
    // Returns the text before "**" in the template's variable, such as
    // "models/". Returns an empty string if there is no "**".
    absl::string_view Folder() const;
  };

  std::vector<Rule> rules_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_METHOD_PATHS_H_
